package api_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/testenv"
)

// TestNames installs the policy that hypershift install installs, and tries the longest names.
func TestNames(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	g.Expect(admissionv1.AddToScheme(scheme)).To(Succeed())
	c := env.Client(t, scheme)
	policy, binding := config.NamePolicy()
	g.Expect(c.Create(t.Context(), policy)).To(Succeed())
	g.Expect(c.Create(t.Context(), binding)).To(Succeed())
	ns := env.Namespace(t)
	named := func(name string) error {
		obj := parse(t, baseHostedCluster)
		obj.SetNamespace(ns)
		obj.SetName(name)
		return c.Create(t.Context(), obj, client.DryRunAll)
	}
	longest := 63 - len(ns) - 1
	// A policy takes a moment to be in force.
	g.Eventually(func() error { return named(long(longest + 1)) }).WithTimeout(30*time.Second).WithPolling(100*time.Millisecond).
		ShouldNot(Succeed(), "the policy never came into force")

	for name, tc := range map[string]struct{ object, reject string }{
		"When the namespace would have 64 characters it should be rejected with that reason": {
			object: long(longest + 1), reject: "would have 64 characters; at most 63 are allowed: choose a name of at most "},
		"When the namespace would have 63 characters it should be accepted":   {object: long(longest)},
		"When dots in the name make no difference it should still be counted": {object: strings.Repeat("a.", longest/2) + "aa", reject: "at most 63 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := named(tc.object)
			if tc.reject == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "want an Invalid error, got %v", err)
			g.Expect(err).To(MatchError(ContainSubstring(tc.reject)))
		})
	}
	t.Run("When the generated part of a name makes it too long it should be rejected", func(t *testing.T) {
		g := NewWithT(t)
		obj := parse(t, baseHostedCluster)
		obj.SetNamespace(ns)
		obj.SetName("")
		obj.SetGenerateName(long(longest - 4))
		g.Expect(c.Create(t.Context(), obj, client.DryRunAll)).To(MatchError(ContainSubstring("would have 64 characters")))
	})
	t.Run("When an object is there already it should still be changed", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(c.Delete(t.Context(), binding)).To(Succeed())
		g.Eventually(func() error { return named(long(longest + 1)) }).WithTimeout(30 * time.Second).WithPolling(100 * time.Millisecond).Should(Succeed())
		obj := parse(t, baseHostedCluster)
		obj.SetNamespace(ns)
		obj.SetName(long(longest + 1))
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
		_, binding := config.NamePolicy()
		g.Expect(c.Create(t.Context(), binding)).To(Succeed())
		g.Eventually(func() error { return named(long(longest + 2)) }).WithTimeout(30 * time.Second).WithPolling(100 * time.Millisecond).ShouldNot(Succeed())
		obj.SetLabels(map[string]string{"a": "b"})
		g.Expect(c.Update(t.Context(), obj)).To(Succeed())
		g.Expect(c.Delete(t.Context(), obj)).To(Succeed())
		g.Expect(c.Delete(t.Context(), binding)).To(Succeed())
	})
}
