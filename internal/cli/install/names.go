package install

const (
	operatorName        = "operator"            // Deployment, Service and ServiceAccount
	legacyName          = "operator-legacy"     // Deployment for hosted clusters from before private types; the operator removes it by this name
	roleName            = "hypershift-operator" // Role, ClusterRole and their bindings
	prometheusRoleName  = "prometheus"          // Role of the Prometheus that reads the operator's metrics
	trustBundleName     = "user-ca-bundle"      // ConfigMap with certificates that the operator trusts
	trustBundleKey      = "ca-bundle.crt"
	pullSecretName      = "pull-secret" // of the operator's own image
	leaderElectionLease = "hypershift-operator-leader-elect"
	clientRoleName      = "hypershift-client"
	readersRoleName     = "hypershift-readers"

	// componentLabel marks the operator's Pods.
	componentLabel = "hypershift.openshift.io/operator-component"
)

// priorityClasses in the order in which Pods should go when a node runs out of room: etcd must outlive the API servers that
// use it, and the operator, which repairs all of them, goes last.
var priorityClasses = []struct {
	name        string
	value       int32
	description string
}{
	{"hypershift-control-plane", 100_000_000, "Control plane components that are not on the API's critical path."},
	{"hypershift-api-critical", 100_001_000, "Control plane components without which the hosted API does not answer."},
	{"hypershift-etcd", 100_002_000, "etcd of a hosted control plane."},
	{"hypershift-operator", 100_003_000, "The HyperShift operator."},
}
