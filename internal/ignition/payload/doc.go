// Package payload makes what a machine boots from: the complete Ignition configuration of a worker.
//
// A payload is a function of its [Inputs] alone: the same inputs give the same bytes, and nothing in them says which version of this
// program made them.
//
// For Kubernetes releases everything is rendered here ([Kubernetes]). OpenShift payloads bring programs that do it: package tools runs them.
package payload
