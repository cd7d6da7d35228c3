package configoperator

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func itoa(n int) string { return strconv.Itoa(n) }

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

const (
	operatorUser = "system:serviceaccount:test:hosted-cluster-config-operator"
	hostedUser   = "system:hosted-cluster-config"
)

// asOperator is the connection with the rights that the operator's component gives it, and no others.
func (w *world) asOperator(t *testing.T, cfg *rest.Config) *rest.Config {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "controlplane", "configoperator", "assets", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.Role{}
	if err := yaml.UnmarshalStrict(raw, role); err != nil {
		t.Fatal(err)
	}
	role.Namespace = w.hcp.Namespace
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Impersonate.UserName = operatorUser
	return cfg
}

// asHostedUser is the connection as the user of Secret hcco-kubeconfig, who has no rights at first.
func (w *world) asHostedUser(t *testing.T, cfg *rest.Config) *rest.Config {
	t.Helper()
	if err := w.hosted.Delete(t.Context(), hostedBinding()); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Impersonate.UserName = hostedUser
	return cfg
}

func (w *world) bindHostedUser(t *testing.T) {
	t.Helper()
	if err := w.hosted.Create(t.Context(), hostedBinding()); err != nil {
		t.Fatal(err)
	}
}

func hostedBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "hcco-cluster-admin"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: hostedUser}},
	}
}
