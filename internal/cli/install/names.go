package install

const (
	operatorName        = "operator"                  // Deployment, Service and ServiceAccount
	legacyName          = "operator-legacy"           // Deployment for hosted clusters from before private types; the operator removes it by this name
	roleName            = "hypershift-operator"       // Role, ClusterRole and their bindings
	prometheusRoleName  = "prometheus"                // Role of the Prometheus that reads the operator's metrics
	metricsReaderName   = "hypershift-metrics-reader" // ClusterRole of those who read the operators' metrics, and its binding
	trustBundleName     = "user-ca-bundle"            // ConfigMap with certificates that the operators trust
	trustBundleKey      = "ca-bundle.crt"
	pullSecretName      = "pull-secret" // of the operator's own image
	leaderElectionLease = "hypershift-operator-leader-elect"
	clientRoleName      = "hypershift-client"
	readersRoleName     = "hypershift-readers"

	// componentLabel marks the operator's Pods.
	componentLabel = "hypershift.openshift.io/operator-component"
)
