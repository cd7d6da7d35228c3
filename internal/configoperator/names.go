package configoperator

const (
	// LeaseName is the leader election lease in the control plane namespace.
	LeaseName = "hosted-cluster-config-operator-leader-elect"
)
