// Package conversion is the webhook that converts Cluster API's objects between v1beta1 and v1beta2, in their standard groups and in
// HyperShift's own. It links Cluster API's conversion functions, so that no other owner's webhook is ever called.
//
//	Handler  answers ConversionReviews
//	Plan     decides which certificates the webhook should have; pure
//	Keeper   carries that out: one Secret, and the CA bundles in CRDs that name our Service
//	Setup    adds all of it to hypershift-operator
//
// The functions use standard names: an object of a private group is renamed before and after. What they keep in the annotation
// cluster.x-k8s.io/conversion-data is therefore in standard names wherever it is stored, and no proxy has to look into it.
package conversion
