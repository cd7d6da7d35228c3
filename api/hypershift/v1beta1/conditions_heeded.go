package v1beta1

// AllFieldsHeeded is a condition of HostedClusters and NodePools that this implementation adds, set by the hypershift-operator: False while a field
// of the spec or an annotation is set that nobody acts on with this release and platform. The message names each with what to do instead. It blocks
// nothing. What is heeded at all is listed in docs/reference/support.md.
const AllFieldsHeeded = "AllFieldsHeeded"

// FieldsNotHeededReason is that of AllFieldsHeeded when it is False.
const FieldsNotHeededReason = "FieldsNotHeeded"
