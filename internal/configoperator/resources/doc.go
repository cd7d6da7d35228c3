// Package resources says which objects a hosted cluster holds from the start.
//
// Everything here is pure: a Resource renders objects from the HostedControlPlane, the operator applies them. Adding one is a
// file with a Resource and a line in All. Objects get the label that marks them as ours centrally.
package resources
