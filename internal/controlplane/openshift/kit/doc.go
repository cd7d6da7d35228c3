// Package kit has what several components of OpenShift payloads have in common and those of Kubernetes releases do not: TLS profiles in their words,
// the payload's feature gates, capabilities, the proxy of the management cluster, and edits of configuration files.
package kit
