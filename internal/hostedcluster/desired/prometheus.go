package desired

import (
	"cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/state"
)

// prometheusRole is the Role, and its binding, of the management cluster's monitoring in a control-plane namespace.
const prometheusRole = "openshift-prometheus"

// PrometheusRights let the monitoring of an OpenShift management cluster find what it asks for metrics in the control-plane namespace.
func PrometheusRights(obs *state.Observed) []client.Object {
	meta := metav1.ObjectMeta{Namespace: names.NamespaceOf(obs.HC), Name: prometheusRole}
	read := []string{"get", "list", "watch"}
	return []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"services", "endpoints", "pods"}, Verbs: read},
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: read},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: prometheusRole},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: cmp.Or(obs.Management.Prometheus, "openshift-monitoring"), Name: "prometheus-k8s"}},
		},
	}
}
