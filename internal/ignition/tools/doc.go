// Package tools makes what machines of an OpenShift release boot from, by running the release's own programs.
//
//	release image ─ image-references ─┐
//	machine-config-operator ─ templates, three programs ─┤
//	cluster-config-api ─ render ─┤
//	                                   ▼
//	render ──► machine-config-operator bootstrap ──► machine-config-controller bootstrap ──► machine-config-server ──► Ignition
//	  gates      manifests of the cluster               rendered configuration of a pool         asked once for /config/master
//
// What is given to a program, file by file and flag by flag, is decided in pure functions ([layout], [stagesFor]); package child runs them within bounds,
// and package imagefiles has them. One payload is made at a time, in a folder of its own that goes in any case. What was made stays in a cache on disk, by
// the hash of all that it was made of, so that a process that starts again makes nothing twice.
package tools
