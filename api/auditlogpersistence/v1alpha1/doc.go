// Package v1alpha1 holds the types of the API group auditlogpersistence.hypershift.openshift.io.
//
// It says how audit logs of hosted API servers outlive their pods.
//
// +kubebuilder:object:generate=true
// +groupName=auditlogpersistence.hypershift.openshift.io
package v1alpha1
