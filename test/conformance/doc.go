// Package conformance runs Kubernetes' own conformance suite, e2e.test of the release's version, against a hosted cluster of a local
// installation, and keeps what came of it. See docs/conformance.md.
//
// The suite runs containers of a dozen images that the machine cannot fetch. Here they are put together from the sources in the module of
// Kubernetes and from Debian packages, and pushed into the registry of the local installation.
package conformance
