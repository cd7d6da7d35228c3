package world

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tenantRights are what platform teams give tenants in a namespace of their own: what Kubernetes calls edit, and packages.
var tenantRights = []rbacv1.PolicyRule{{
	APIGroups: []string{"package-operator.run"}, Verbs: []string{"*"},
	Resources: []string{"packages", "objecttemplates", "objectdeployments", "objectsets", "objectsetphases", "objectslices"},
}}

// User is a tenant: a ServiceAccount that may do all it likes in namespace Tenant of an API server, and nothing elsewhere. cfg is an administrator's.
func (w *World) User(ctx context.Context, cfg *rest.Config) (*rest.Config, error) {
	c, err := NewClient(cfg)
	if err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{Namespace: Tenant, Name: "tenant", Labels: map[string]string{Label: "true"}}
	sa := &corev1.ServiceAccount{ObjectMeta: meta}
	subject := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Tenant, Name: sa.Name}}
	packages := *meta.DeepCopy()
	packages.Name = "packages"
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Tenant, Labels: map[string]string{Label: "true"}}}, sa,
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"}},
		&rbacv1.Role{ObjectMeta: packages, Rules: tenantRights},
		&rbacv1.RoleBinding{ObjectMeta: packages, Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: packages.Name}},
	} {
		if err := client.IgnoreAlreadyExists(c.Create(ctx, o)); err != nil {
			return nil, fmt.Errorf("making a tenant: %w", err)
		}
	}
	const tokenSeconds = 2 * 3600 // longer than any plan
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenSeconds)}}
	if err := c.SubResource("token").Create(ctx, sa, request); err != nil {
		return nil, fmt.Errorf("asking for a tenant's token: %w", err)
	}
	user := rest.AnonymousClientConfig(cfg)
	user.BearerToken, user.QPS, user.Timeout, user.UserAgent = request.Status.Token, -1, callTimeout, "adversary-tenant"
	return user, nil
}
