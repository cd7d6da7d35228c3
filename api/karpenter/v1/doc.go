// Package v1 holds the types of the API group karpenter.hypershift.openshift.io.
//
// Unlike the other groups it is served by hosted clusters: users of a hosted cluster with spec.autoNode say there what machines
// Karpenter may make.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.hypershift.openshift.io
package v1
