// Package v1alpha1 holds the types of the API group certificates.hypershift.openshift.io.
//
// They steer the signers of the control-plane PKI operator: which requests for client certificates are approved, and which
// certificates are revoked.
//
// +kubebuilder:object:generate=true
// +groupName=certificates.hypershift.openshift.io
package v1alpha1
