// Package v1alpha1 holds the types of the API group scheduling.hypershift.openshift.io.
//
// It says how large hosted clusters are, and what follows from it.
//
// +kubebuilder:object:generate=true
// +groupName=scheduling.hypershift.openshift.io
package v1alpha1
