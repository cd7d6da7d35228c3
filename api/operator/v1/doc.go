// Package v1 holds those parts of OpenShift's operator.openshift.io/v1 that the APIs of this module embed: how an ingress
// controller is published. It has no kinds of its own.
//
// +kubebuilder:object:generate=true
package v1
