// Package v1 holds those parts of OpenShift's config.openshift.io/v1 that the APIs of this module embed: the specs of
// cluster-wide settings and the status of a version rollout. It has no kinds of its own.
//
// +kubebuilder:object:generate=true
package v1
