package configoperator

const (
	// FieldOwner owns every field that this operator sets, in both clusters.
	FieldOwner = "hosted-cluster-config-operator"
	// LeaseName is the leader election lease in the control plane namespace.
	LeaseName = "hosted-cluster-config-operator-leader-elect"
)
