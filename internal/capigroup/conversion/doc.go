// Package conversion is the webhook that converts Cluster API's objects between v1beta1 and v1beta2, in their standard groups and in
// HyperShift's own. It links Cluster API's conversion functions, so that no webhook of another owner of Cluster API is ever asked.
//
//	Handler  answers ConversionReviews
//	Plan     says which certificates the webhook should have; pure
//	Keeper   makes that so: one Secret, and the CA bundles in definitions that name our Service
//	Setup    adds all of it to hypershift-operator
//
// The functions work in standard names: an object of a private group is renamed before and after. What they keep in the annotation
// cluster.x-k8s.io/conversion-data is therefore in standard names wherever it is stored, and no proxy has to look into it.
package conversion
