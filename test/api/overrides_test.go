package api_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/testenv"
)

// TestOverrides puts the policy about annotations in force and plays a tenant, an operator of sites and an administrator.
func TestOverrides(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	g.Expect(admissionv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(rbacv1.AddToScheme(scheme)).To(Succeed())
	admin := env.Client(t, scheme)
	ns := env.Namespace(t)
	policy, binding := config.OverridePolicy(admissionv1.Deny)
	for _, obj := range append([]client.Object{policy, binding}, roles(ns)...) {
		g.Expect(admin.Create(t.Context(), obj)).To(Succeed())
	}
	as := func(user string) client.Client {
		cfg := rest.CopyConfig(env.Config)
		cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
		c, err := client.New(cfg, client.Options{Scheme: scheme})
		g.Expect(err).NotTo(HaveOccurred())
		return c
	}
	tenant, sre := as("tenant"), as("sre")
	cluster := func(name string, annotations map[string]string) *unstructured.Unstructured {
		obj := parse(t, baseHostedCluster)
		obj.SetNamespace(ns)
		obj.SetName(name)
		obj.SetAnnotations(annotations)
		return obj
	}
	const image, level = "hypershift.openshift.io/control-plane-operator-image", "hypershift.openshift.io/pod-security-admission-label-override"
	create := func(c client.Client, annotations map[string]string) error {
		return c.Create(t.Context(), cluster("new", annotations), client.DryRunAll)
	}
	// A policy takes a moment to be in force, and roles, too.
	g.Eventually(func() error { return create(tenant, map[string]string{image: "evil"}) }).WithTimeout(60 * time.Second).WithPolling(100 * time.Millisecond).
		Should(MatchError(ContainSubstring("only users with verb override on hostedclusters")))

	for _, key := range []string{
		image, level, "hypershift.openshift.io/control-plane-operator-image-labels", "hypershift.openshift.io/image-overrides",
		"hypershift.openshift.io/capi-manager-image", "hypershift.openshift.io/capi-provider-aws-image", "hypershift.openshift.io/konnectivity-server-image",
		"hypershift.openshift.io/control-plane-priority-class", "hypershift.openshift.io/api-critical-priority-class", "hypershift.openshift.io/etcd-priority-class",
	} {
		t.Run("When a tenant sets "+key+" it should be refused, and taken from who may", func(t *testing.T) {
			g := NewWithT(t)
			err := create(tenant, map[string]string{key: "privileged", "a": "b"})
			g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "want Forbidden, got %v", err)
			g.Expect(err).To(MatchError(ContainSubstring("metadata.annotations: " + key + ": only users")))
			g.Expect(create(sre, map[string]string{key: "privileged"})).To(Succeed())
			g.Expect(create(admin, map[string]string{key: "privileged"})).To(Succeed())
		})
	}
	t.Run("When a tenant sets other annotations or none it should be accepted", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(create(tenant, nil)).To(Succeed())
		g.Expect(create(tenant, map[string]string{"hypershift.openshift.io/restart-date": "now", "example.com/an-image": "x"})).To(Succeed())
	})

	g.Expect(admin.Create(t.Context(), cluster("demo", map[string]string{image: "hotfix"}))).To(Succeed())
	for name, tc := range map[string]struct {
		by      client.Client
		change  func(annotations map[string]string)
		refused bool
	}{
		"When a tenant changes something else it should be accepted": {by: tenant, change: func(a map[string]string) { a["x"] = "y" }},
		"When a tenant changes a set one it should be refused":       {by: tenant, change: func(a map[string]string) { a[image] = "mine" }, refused: true},
		"When a tenant removes a set one it should be refused":       {by: tenant, change: func(a map[string]string) { delete(a, image) }, refused: true},
		"When a tenant adds another it should be refused":            {by: tenant, change: func(a map[string]string) { a[level] = "privileged" }, refused: true},
		"When the right was given for this name it should be taken":  {by: sre, change: func(a map[string]string) { delete(a, image); a[level] = "baseline" }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			live := cluster("demo", nil)
			g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(live), live)).To(Succeed())
			annotations := live.GetAnnotations()
			tc.change(annotations)
			live.SetAnnotations(annotations)
			err := tc.by.Update(t.Context(), live, client.DryRunAll)
			if tc.refused {
				g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "want Forbidden, got %v", err)
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
	t.Run("When the policy only warns it should accept", func(t *testing.T) {
		g := NewWithT(t)
		_, warning := config.OverridePolicy(admissionv1.Warn)
		live := &admissionv1.ValidatingAdmissionPolicyBinding{}
		g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(warning), live)).To(Succeed())
		live.Spec = warning.Spec
		g.Expect(admin.Update(t.Context(), live)).To(Succeed())
		g.Eventually(func() error { return create(tenant, map[string]string{level: "privileged"}) }).WithTimeout(60 * time.Second).WithPolling(100 * time.Millisecond).
			Should(Succeed())
		g.Expect(admin.Delete(t.Context(), live)).To(Succeed())
	})
}

// roles let user tenant change HostedClusters, and user sre override in those of two names besides.
func roles(ns string) (objs []client.Object) {
	const group = "hypershift.openshift.io"
	change := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"hostedclusters"}, Verbs: []string{"get", "create", "update", "patch"}}
	override := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"hostedclusters"}, ResourceNames: []string{"new", "demo"}, Verbs: []string{config.OverrideVerb}}
	for user, rules := range map[string][]rbacv1.PolicyRule{"tenant": {change}, "sre": {change, override}} {
		meta := metav1.ObjectMeta{Namespace: ns, Name: user}
		objs = append(objs, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		})
	}
	return objs
}
