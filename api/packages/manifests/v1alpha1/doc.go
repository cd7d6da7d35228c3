// Package v1alpha1 holds the types of the API group manifests.package-operator.run: the files of packages and of package
// repositories. No API server serves them.
//
// +kubebuilder:object:generate=true
// +kubebuilder:skip
// +groupName=manifests.package-operator.run
package v1alpha1
