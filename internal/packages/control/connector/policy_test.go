package connector

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/packages/packagestest"
)

// TestConnectorPolicy acts as the connector of a namespace, with all rights that RBAC could give: what is refused, the policy refuses.
func TestConnectorPolicy(t *testing.T) {
	g := NewWithT(t)
	w := packagestest.Start(t)
	scheme := packagestest.Scheme(t)
	g.Expect(admissionv1.AddToScheme(scheme)).To(Succeed())
	c := w.Env.Client(t, scheme)
	policy, binding := config.ConnectorPolicy()
	g.Expect(c.Create(t.Context(), policy)).To(Succeed())
	g.Expect(c.Create(t.Context(), binding)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(t.Context(), binding); _ = c.Delete(t.Context(), policy) })
	ns, other := w.Namespace(t), w.Namespace(t)
	cfg := rest.CopyConfig(w.Env.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + ns + ":package-operator-remote-phase-manager", Groups: []string{"system:masters"}}
	connector, err := client.New(cfg, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	phase := func(ns, class string) *v1alpha1.ObjectSetPhase {
		p := &v1alpha1.ObjectSetPhase{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: class, Labels: map[string]string{v1alpha1.PhaseClassLabel: class}},
			Spec:       v1alpha1.ObjectSetPhaseSpec{Revision: 1, Objects: []v1alpha1.ObjectSetObject{}},
		}
		g.Expect(c.Create(t.Context(), p)).To(Succeed())
		return p
	}
	ours, standard, elsewhere := phase(ns, "hosted-cluster"), phase(ns, "default"), phase(other, "default")
	const (
		finalizer  = `{"metadata":{"finalizers":["package-operator.run/cached"]}}`
		paused     = `{"spec":{"paused":true}}`
		owner      = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"u"}]}}`
		annotation = `{"metadata":{"annotations":{"a":"b"}}}`
		status     = `{"status":{"conditions":[{"type":"Available","status":"True","reason":"A","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	)
	write := func(p *v1alpha1.ObjectSetPhase, body string) error {
		obj, patch := p.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(body))
		if body == status {
			return connector.Status().Patch(t.Context(), obj, patch, client.DryRunAll)
		}
		// What was written before the policy works would be no change afterwards.
		return connector.Patch(t.Context(), obj, patch, client.DryRunAll)
	}
	// A policy works some time after it is there.
	g.Eventually(func() bool { return apierrors.IsForbidden(write(ours, paused)) }).WithTimeout(2 * time.Minute).WithPolling(100 * time.Millisecond).Should(BeTrue())
	for name, tc := range map[string]struct {
		phase   *v1alpha1.ObjectSetPhase
		body    string
		refused bool
	}{
		"When it takes on a phase of its class it should be let":       {ours, finalizer, false},
		"When it reports on a phase of its class it should be let":     {ours, status, false},
		"When it reports on another class it should be refused":        {standard, status, true},
		"When it takes on another class it should be refused":          {standard, finalizer, true},
		"When it changes who owns a phase it should be refused":        {ours, owner, true},
		"When it annotates a phase it should be refused":               {ours, annotation, true},
		"When it is another namespace's the policy should say nothing": {elsewhere, finalizer, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := write(tc.phase, tc.body)
			if tc.refused {
				NewWithT(t).Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
				return
			}
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
		})
	}
	t.Run("When somebody else pauses the phase it should be let", func(t *testing.T) {
		NewWithT(t).Expect(c.Patch(t.Context(), ours.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(paused)))).To(Succeed())
	})
}
