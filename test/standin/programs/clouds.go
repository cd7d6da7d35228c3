package programs

const (
	leaderFlags = " leader-elect=bool leader-elect-lease-duration=duration leader-elect-renew-deadline=duration leader-elect-retry-period=duration leader-elect-resource-namespace=text"
	cloudFlags  = "cloud-provider=text! cloud-config=file! kubeconfig=kubeconfig! configure-cloud-routes=bool" + leaderFlags + tlsFlags
	cloudAuth   = " authentication-kubeconfig=kubeconfig! authorization-kubeconfig=kubeconfig!"
	accounts    = " use-service-account-credentials=bool!"
)

var clouds = []Program{
	{Name: "aws-cloud-controller-manager", Image: "aws-cloud-controller-manager", Flags: cloudFlags + cloudAuth + accounts},
	{Name: "azure-cloud-controller-manager", Image: "azure-cloud-controller-manager", Flags: cloudFlags + " controllers=text! bind-address=text! route-reconciliation-period=duration v=number cluster-name=text!"},
	{Name: "gcp-cloud-controller-manager", Image: "gcp-cloud-controller-manager", Flags: cloudFlags + cloudAuth + accounts + " controllers=text!"},
	{
		Name: "openstack-cloud-controller-manager", Image: "openstack-cloud-controller-manager", Env: "CLOUD_CONFIG OCP_INFRASTRUCTURE_NAME",
		Flags: cloudFlags + accounts + " v=number cluster-name=text! bind-address=text!",
	},
	{
		Name: "kubevirt-cloud-controller-manager", Image: "kubevirt-cloud-controller-manager",
		Flags: "cloud-provider=text! cloud-config=file! kubeconfig=kubeconfig! authentication-skip-lookup=bool! cluster-name=text!" + tlsFlags,
	},
	{
		Name: "ibm-cloud-controller-manager", Image: "powervs-cloud-controller-manager", Env: "POD_IP_ADDRESS",
		Flags: cloudFlags + " authentication-skip-lookup=bool! bind-address=text! profiling=bool",
	},
	{
		Name: "aws-node-termination-handler", Image: "aws-node-termination-handler", Entry: true,
		Env: "NODE_NAME POD_NAME NAMESPACE KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT AWS_SHARED_CREDENTIALS_FILE",
	},
	{
		Name: "karpenter", Image: "aws-karpenter-provider-aws", Entry: true,
		Env:    "KUBECONFIG SYSTEM_NAMESPACE DISABLE_WEBHOOK HEALTH_PROBE_PORT CLUSTER_NAME CLUSTER_ENDPOINT",
		Listen: []Listener{{Address: ":8080"}, {Address: ":8081"}},
	},
	{
		Name: "aws-pod-identity-webhook", Image: "aws-pod-identity-webhook",
		Flags:  `annotation-prefix=text! in-cluster=bool! kubeconfig=kubeconfig! logtostderr=bool port=number! aws-default-region=text! tls-cert=cert! tls-key=key! token-audience=text!` + tlsFlags,
		Listen: []Listener{{From: "port", Cert: "-tls-cert", Key: "-tls-key"}},
	},
	{
		Name: "azure-workload-identity-webhook", Image: "azure-workload-identity-webhook", Env: "AZURE_TENANT_ID AZURE_ENVIRONMENT",
		Flags:  `webhook-cert-dir=dir! health-addr=address! audience=text! kubeconfig=kubeconfig! metrics-addr=address! log-level=text disable-cert-rotation=bool!` + tlsFlags,
		Listen: []Listener{{From: "health-addr"}},
	},
}

var others = []Program{
	{
		Name: "cluster-etcd-operator", Image: "cluster-etcd-operator", Words: "readyz",
		Flags: `target=text! listen-port=number! serving-cert-file=cert! serving-key-file=key! client-cert-file=cert! client-key-file=key! client-cacert-file=ca!
			listen-tls-min-version=tlsversion listen-cipher-suites=suites`,
		Listen: []Listener{{From: "listen-port", Cert: "-serving-cert-file", Key: "-serving-key-file", Host: "localhost"}},
	},
	{
		// Plain etcd has this proxy, too, but takes no client certificate with a common name, which those of hosted clusters have.
		Name: "etcd", Image: "etcd", Words: "grpc-proxy start",
		Flags: `endpoints=text! key=key! key-file=key! cert=cert! cert-file=cert! cacert=ca! trusted-ca-file=ca! listen-addr=address! metrics-addr=text! advertise-client-url=any!
			tls-min-version=tlsversion listen-cipher-suites=suites`,
		Listen: []Listener{{From: "metrics-addr", Cert: "-cert-file", Key: "-key-file", Host: "etcd-client"}},
	},
	{
		Name: "render", Image: "cluster-config-api", Once: true,
		Flags: "asset-output-dir=text! rendered-manifest-dir=dir! cluster-profile=text! payload-version=text!",
	},
	{
		Name: "authentication-operator", Image: "cluster-authentication-operator", Words: "render", Once: true,
		Flags: "asset-output-dir=text! rendered-manifest-dir=dir! cluster-profile=text! payload-version=text!",
	},
	{Name: "haproxy", Image: "haproxy-router", Flags: "f=text!"},
}
