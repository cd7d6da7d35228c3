// Package v1beta1 holds the types of the API group hypershift.openshift.io.
//
// A user writes HostedCluster and NodePool. The operators derive HostedControlPlane and
// ControlPlaneComponent from them inside the control-plane namespace. Validation and defaulting are
// markers on the types: the CRDs below config/crd are generated from this package, so a rule that is
// not written here does not exist.
//
// Optional structs are tagged omitzero rather than omitempty, so that a zero value is absent on the
// wire instead of an empty object whose required fields would then be missing.
//
// +kubebuilder:object:generate=true
// +groupName=hypershift.openshift.io
package v1beta1
