// Package release answers what a release image is: its version and which image it holds for every component.
//
// A release image carries release-manifests/image-references, an ImageStream whose tags map component names to images. OpenShift
// payloads have that, and the Kubernetes releases that this project builds have the same layout, so one provider reads both.
//
//	Provider (interface)
//	├── Registry        pulls with go-containerregistry; bounded reads; cached by digest; mirrors and overrides applied
//	└── ProviderFunc    a function in its place
//
// Registries and the images in them are not trusted: every read has a limit in bytes, entries and time, content addressed by digest is
// verified, and nothing that a registry says is repeated in an error message.
//
// The rules about which version may follow which are pure functions, see window.go.
package release
