package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/testenv"
)

// TestDeleteProtection puts the policy in force and deletes what it protects, and what it doesn't.
func TestDeleteProtection(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	g.Expect(admissionv1.AddToScheme(scheme)).To(Succeed())
	c := env.Client(t, scheme)
	ns := env.Namespace(t)
	policy, binding := config.ProtectionPolicy("hypershift")
	for _, obj := range []client.Object{policy, binding} {
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(context.Background(), obj) })
	}
	cluster := func(name string, annotations map[string]string) *unstructured.Unstructured {
		obj := parse(t, baseHostedCluster)
		obj.SetNamespace(ns)
		obj.SetName(name)
		obj.SetAnnotations(annotations)
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
		return obj
	}
	protected := cluster("protected", map[string]string{hyperv1.DeleteProtectionAnnotation: "true"})
	// A policy takes a moment to be in force.
	g.Eventually(func() error { return c.Delete(t.Context(), protected, client.DryRunAll) }).WithTimeout(60 * time.Second).WithPolling(100 * time.Millisecond).
		Should(MatchError(ContainSubstring("is protected from deletion: remove annotation " + hyperv1.DeleteProtectionAnnotation)))

	t.Run("When a hosted cluster is protected it should be refused as forbidden, and stay", func(t *testing.T) {
		g := NewWithT(t)
		err := c.Delete(t.Context(), protected)
		g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		g.Expect(err).To(MatchError(ContainSubstring("HostedCluster " + ns + "/protected is protected")))
	})
	t.Run("When the annotation says something else or is not there it should be deleted", func(t *testing.T) {
		for name, annotations := range map[string]map[string]string{"no": {hyperv1.DeleteProtectionAnnotation: "false"}, "other": {"a": "b"}, "none": nil} {
			NewWithT(t).Expect(c.Delete(t.Context(), cluster(name, annotations))).To(Succeed(), name)
		}
	})
	t.Run("When the annotation is removed it should be deleted", func(t *testing.T) {
		g := NewWithT(t)
		protected.SetAnnotations(nil)
		g.Expect(c.Update(t.Context(), protected)).To(Succeed())
		g.Expect(c.Delete(t.Context(), protected)).To(Succeed())
	})
	protectedPool := func(name string) *unstructured.Unstructured {
		obj := parse(t, baseNodePool)
		obj.SetNamespace(ns)
		obj.SetName(name)
		obj.SetAnnotations(map[string]string{hyperv1.DeleteProtectionAnnotation: "true"})
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
		return obj
	}
	as := func(user string) client.Client {
		config := rest.CopyConfig(env.Config)
		// Administrators, so that the policy alone is in the way.
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters", "system:authenticated"}}
		impersonated, err := client.New(config, client.Options{Scheme: scheme})
		g.Expect(err).NotTo(HaveOccurred())
		return impersonated
	}
	t.Run("When somebody deletes a protected NodePool it should be refused, whatever the account is called", func(t *testing.T) {
		pool := protectedPool("kept")
		for _, user := range []string{"jane", "system:serviceaccount:" + ns + ":operator", "system:serviceaccount:tenant:operator", "system:serviceaccount:hypershift:other",
			"system:serviceaccount:x:hypershift:operator", "system:serviceaccount:clusters-demo:control-plane-operator"} {
			err := as(user).Delete(t.Context(), pool)
			NewWithT(t).Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", user, err)
		}
	})
	t.Run("When the operator or the garbage collector deletes a protected NodePool it should go, as with its hosted cluster", func(t *testing.T) {
		for i, user := range []string{"system:serviceaccount:hypershift:operator", "system:serviceaccount:kube-system:generic-garbage-collector"} {
			NewWithT(t).Expect(as(user).Delete(t.Context(), protectedPool(fmt.Sprint("goes-", i)))).To(Succeed(), user)
		}
	})
	t.Run("When the operator deletes a protected hosted cluster it should be refused", func(t *testing.T) {
		err := as("system:serviceaccount:hypershift:operator").Delete(t.Context(), cluster("not-by-operator", map[string]string{hyperv1.DeleteProtectionAnnotation: "true"}))
		NewWithT(t).Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	})
}
