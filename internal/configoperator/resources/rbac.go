package resources

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Users and groups of certificates that the control plane's PKI issues.
const (
	kubeAPIServerUser = "system:kube-apiserver"
	// nodeBootstrapperUser is who a new machine is until it has a certificate of its own.
	nodeBootstrapperUser = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
	nodesGroup           = "system:nodes"
	// metricsUser is who a Prometheus is with Secret metrics-client of the control-plane namespace.
	metricsUser = "system:serviceaccount:hypershift:prometheus"
)

// kubeletAccess lets kube-apiserver talk to kubelets; without it logs, exec and port-forward are forbidden.
func kubeletAccess(Input) ([]client.Object, error) {
	return []client.Object{
		bind("system:kube-apiserver:kubelet-api-admin", "system:kubelet-api-admin", user(kubeAPIServerUser)),
	}, nil
}

// metricsAccess lets who collects metrics of the control plane read those of kube-apiserver, and what asks it for leave.
func metricsAccess(Input) ([]client.Object, error) {
	return []client.Object{bind("hypershift-metrics-client", "system:monitoring", user(metricsUser))}, nil
}

// nodeCertificates lets new machines ask for a certificate and nodes renew theirs. The first certificate is not approved by
// a right: an approver matches requests with machines, and csr-approver is what it needs for that.
func nodeCertificates(Input) ([]client.Object, error) {
	return []client.Object{
		bind("node-bootstrapper", "system:node-bootstrapper", user(nodeBootstrapperUser)),
		bind("csr-renewal", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", group(nodesGroup)),
		&rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: "csr-approver"},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"get", "list", "watch"}},
				{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests/approval"}, Verbs: []string{"update"}},
				{
					APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, Verbs: []string{"approve"},
					ResourceNames: []string{"kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"},
				},
			},
		},
	}, nil
}

func bind(name, role string, subject rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func group(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}
