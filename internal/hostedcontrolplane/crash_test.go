package hostedcontrolplane

import (
	"iter"
	"maps"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// crashStep is every how many writes a crash is tried. Bringing up a control plane takes 100 writes and more, of which most are certificates of the same wave;
// every eleventh write hits each wave and each component. CRASH_STEP=1 tries all.
const crashStep = 11

func requestFor(hcp *hyperv1.HostedControlPlane) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hcp)}
}

func keysOf[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// expectedSecrets of a settled control plane.
var expectedSecrets = []string{
	"admin-kubeconfig", "bootstrap-kubeconfig", "cluster-signer-ca", "demo-abcde-kubeconfig", "etcd-client-tls", "etcd-metrics-client-tls",
	"etcd-metrics-signer", "etcd-peer-tls", "etcd-server-tls", "etcd-signer", "hcco-client", "hcco-kubeconfig", "hcco-signer",
	"ignition-server-ca-cert", "ignition-server-serving-cert",
	"kas-aggregator-client-signer", "kas-aggregator-crt", "kas-bootstrap-client", "kas-bootstrap-container-client",
	"kas-bootstrap-container-kubeconfig", "kas-bootstrap-container-signer", "kas-kubelet-client-crt", "kas-server-crt", "kas-server-private-crt",
	"kcm-server", "konnectivity-agent", "konnectivity-client", "konnectivity-cluster", "konnectivity-server", "konnectivity-signer",
	"kube-apiserver-to-kubelet-signer", "kube-control-plane-signer", "kube-controller-manager", "kube-controller-manager-kubeconfig",
	"kube-scheduler-client", "kube-scheduler-kubeconfig", "localhost-kubeconfig", "metrics-client", "pull-secret", "root-ca", "sa-signing-key",
	"scheduler-server", "service-network-admin-kubeconfig", "system-admin-client", "system-admin-signer",
}
