package programs

import "hcp.internal/platform/test/standin/checks"

const terminate = " terminate-on-files=file*"

var operators = []Program{
	{
		Name: "cluster-version-operator", Image: "cluster-version-operator", Words: "start",
		Flags: `release-image=text! enable-auto-update=bool! kubeconfig=kubeconfig! listen=address! serving-cert-file=cert! serving-key-file=key! hypershift=bool! v=number
			update-service=text use-dns-for-services=bool metrics-ca-bundle-file=ca metrics-url=text` + tlsFlags,
		Env:    "PAYLOAD_OVERRIDE CLUSTER_PROFILE RELEASE_IMAGE NODE_NAME",
		Listen: []Listener{{From: "listen", Cert: "-serving-cert-file", Key: "-serving-key-file", Host: "cluster-version-operator"}},
	},
	{
		Name: "cluster-network-operator", Image: "cluster-network-operator", Words: "start", Operator: "network",
		Flags: "listen=address! kubeconfig=kubeconfig! namespace=text! extra-clusters=text!",
		Env: `HYPERSHIFT CA_CONFIG_MAP CA_CONFIG_MAP_KEY POD_NAME HOSTED_CLUSTER_NAMESPACE HOSTED_CLUSTER_NAME TOKEN_AUDIENCE RELEASE_VERSION OPENSHIFT_RELEASE_IMAGE
			APISERVER_OVERRIDE_HOST APISERVER_OVERRIDE_PORT OVN_NB_RAFT_ELECTION_TIMER OVN_CONTROLLER_INACTIVITY_PROBE`,
		Files:  []string{"/configs/management", "/var/run/secrets/kubernetes.io/hosted/token", "/etc/certificate/ca/ca.crt"},
		Listen: []Listener{{From: "listen"}},
	},
	{
		Name: "dns-operator", Image: "cluster-dns-operator", Operator: "dns",
		Env: "RELEASE_VERSION IMAGE OPENSHIFT_CLI_IMAGE KUBE_RBAC_PROXY_IMAGE KUBECONFIG",
	},
	{
		Name: "ingress-operator", Image: "cluster-ingress-operator", Words: "start", Operator: "ingress",
		Flags: `namespace=text! image=text! haproxy-image=text* default-haproxy-version=text! canary-image=text! release-version=text! metrics-listen-addr=address!`,
		Env:   "RELEASE_VERSION IMAGE HAPROXY_28_IMAGE HAPROXY_32_IMAGE DEFAULT_HAPROXY_VERSION CANARY_IMAGE KUBECONFIG HTTP_PROXY HTTPS_PROXY NO_PROXY",
		// The certificate of its metrics is its own affair.
		Listen: []Listener{{From: "metrics-listen-addr"}},
	},
	{
		Name: "cluster-node-tuning-operator", Image: "cluster-node-tuning-operator", Operator: "node-tuning", Flags: "v=number",
		Env:    "RELEASE_VERSION HYPERSHIFT MY_NAMESPACE WATCH_NAMESPACE POD_NAME RESYNC_PERIOD CLUSTER_NODE_TUNED_IMAGE KUBECONFIG",
		Files:  []string{"/tmp/metrics-client-ca/ca.crt"},
		Listen: []Listener{{Address: ":60000", Cert: "/etc/secrets/tls.crt", Key: "/etc/secrets/tls.key", Host: "node-tuning-operator.NAMESPACE.svc"}},
	},
	{
		Name: "cluster-image-registry-operator", Image: "cluster-image-registry-operator", Operator: "image-registry", Flags: "config=file! files=file*",
		Env:    "RELEASE_VERSION WATCH_NAMESPACE OPERATOR_NAME OPERATOR_IMAGE IMAGE IMAGE_PRUNER OPERATOR_IMAGE_VERSION KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT",
		Files:  []string{"/var/run/secrets/kubernetes.io/serviceaccount/token", "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", "/var/run/secrets/kubernetes.io/serviceaccount/namespace"},
		Config: "config", Read: checks.GenericController,
		Listen: []Listener{{Address: ":60000", Config: true, Cert: "/etc/secrets/tls.crt", Key: "/etc/secrets/tls.key"}},
	},
	{
		Name: "cloud-credential-operator", Image: "cloud-credential-operator", Words: "operator", Operator: "cloud-credential",
		Flags: "kubeconfig=kubeconfig!", Env: "RELEASE_VERSION KUBECONFIG",
	},
	{
		Name: "olm", Image: "operator-lifecycle-manager", Operator: "operator-lifecycle-manager",
		Flags:  "namespace=text! writeStatusName=text! writePackageServerStatusName=any! tls-cert=cert! tls-key=key! client-ca=ca!",
		Env:    "OPERATOR_NAMESPACE OPERATOR_NAME RELEASE_VERSION KUBECONFIG GRPC_PROXY NO_PROXY",
		Listen: []Listener{{Address: ":8443", Cert: "-tls-cert", Key: "-tls-key", Host: "olm-operator-metrics"}},
	},
	{
		Name: "catalog", Image: "operator-lifecycle-manager", Operator: "operator-lifecycle-manager-catalog",
		Flags: `namespace=text! configmapServerImage=text! opmImage=text! util-image=text! writeStatusName=text! tls-cert=cert! tls-key=key! client-ca=ca! kubeconfig=kubeconfig!`,
		Env:   "RELEASE_VERSION KUBECONFIG OLM_OPERATOR_IMAGE OPERATOR_REGISTRY_IMAGE GRPC_PROXY NO_PROXY",
		Listen: []Listener{
			{Address: ":8443", Cert: "-tls-cert", Key: "-tls-key", Host: "catalog-operator-metrics"},
		},
	},
	{
		Name: "collect-profiles", Image: "operator-lifecycle-manager", Once: true, Args: "-heap-:https://",
		Flags: "n=text! config-mount-path=dir! cert-mount-path=dir!", Env: "MY_NAMESPACE",
	},
	{
		Name: "cluster-autoscaler", Image: "cluster-autoscaler",
		Flags: `cloud-provider=text! node-group-auto-discovery=text! kubeconfig=kubeconfig! clusterapi-cloud-config-authoritative=bool! skip-nodes-with-local-storage=bool alsologtostderr=bool
			leader-elect-lease-duration=duration leader-elect-retry-period=duration leader-elect-renew-deadline=duration balance-similar-node-groups=bool v=number expander=text
			balancing-ignore-label=text* max-nodes-total=number max-graceful-termination-sec=number max-node-provision-time=duration max-free-difference-ratio=float
			expendable-pods-priority-cutoff=number scale-down-enabled=bool scale-down-delay-after-add=duration scale-down-delay-after-delete=duration
			scale-down-delay-after-failure=duration scale-down-unneeded-time=duration scale-down-utilization-threshold=float`,
		Env: "MY_NAMESPACE", Listen: []Listener{{Address: ":8085"}},
	},
	{
		Name: "machine-approver", Image: "cluster-machine-approver",
		Flags:  `config=file! v=number logtostderr=bool apigroup=text! workload-cluster-kubeconfig=kubeconfig! management-cluster-kubeconfig=file disable-status-controller=bool! machine-namespace=text!` + tlsFlags,
		Config: "config", Read: checks.MachineApprover,
	},
	{
		Name: "migrator", Image: "kube-storage-version-migrator", Flags: "alsologtostderr=bool v=number kubeconfig=kubeconfig!", Env: "POD_NAME POD_NAMESPACE",
	},
}

var storage = []Program{
	{
		Name: "cluster-storage-operator", Image: "cluster-storage-operator", Words: "start start", Operator: "storage",
		Flags: "v=number config=file! guest-kubeconfig=kubeconfig!" + terminate, Env: "OPERATOR_IMAGE_VERSION OPERAND_IMAGE_VERSION HYPERSHIFT_IMAGE",
		Config: "config", Read: checks.GenericController,
		Listen: []Listener{{Address: ":8443", Config: true, Cert: "/var/run/secrets/serving-cert/tls.crt", Key: "/var/run/secrets/serving-cert/tls.key"}},
	},
	{
		Name: "csi-snapshot-controller-operator", Image: "cluster-csi-snapshot-controller-operator", Entry: true, Words: "start", Operator: "csi-snapshot-controller",
		Flags: "v=number config=file! guest-kubeconfig=kubeconfig!" + terminate, Env: "OPERAND_IMAGE OPERATOR_IMAGE_VERSION OPERAND_IMAGE_VERSION POD_NAME",
		Config: "config", Read: checks.GenericController,
		Listen: []Listener{{Address: ":8443", Config: true, Cert: "/var/run/secrets/serving-cert/tls.crt", Key: "/var/run/secrets/serving-cert/tls.key"}},
	},
	{
		Name: "kubevirt-csi-driver", Image: "kubevirt-csi-driver", Entry: true,
		Flags: `endpoint=text! infra-cluster-namespace=text! tenant-cluster-kubeconfig=kubeconfig! infra-cluster-labels=text! infra-cluster-kubeconfig=kubeconfig run-node-service=bool!
			run-controller-service=bool! v=number infra-storage-class-enforcement=text`,
	},
	{Name: "csi-provisioner", Image: "csi-external-provisioner", Entry: true, Flags: csiFlags + " default-fstype=text retry-interval-max=duration"},
	{Name: "csi-attacher", Image: "csi-external-attacher", Entry: true, Flags: csiFlags + " retry-interval-max=duration"},
	{Name: "livenessprobe", Image: "csi-livenessprobe", Entry: true, Flags: "csi-address=text! probe-timeout=duration health-port=number!"},
	{Name: "csi-snapshotter", Image: "csi-external-snapshotter", Entry: true, Flags: csiFlags},
	{Name: "csi-resizer", Image: "csi-external-resizer", Entry: true, Flags: csiFlags + " handle-volume-inuse-error=bool"},
}

const csiFlags = "csi-address=text! v=number kubeconfig=kubeconfig! timeout=duration"
