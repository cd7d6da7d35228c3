// Package components says how each process of the local management cluster is started: flags, configuration files and
// readiness. Rendering is pure; Write puts the files into the state folder.
package components
