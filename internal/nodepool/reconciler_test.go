package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/testenv"
)

// expectPool asserts the end state of an undisturbed reconcile.
func (w *world) expectPool(t testing.TB) {
	g := NewWithT(t)
	np := w.pool(t)
	g.Expect(np.Finalizers).To(ContainElement(Finalizer))
	g.Expect(np.OwnerReferences).To(HaveLen(1))
	secrets := &corev1.SecretList{}
	g.Expect(w.client.List(t.Context(), secrets, client.InNamespace(w.hcpNS), client.MatchingLabels(ownLabels()))).To(Succeed())
	g.Expect(secrets.Items).To(HaveLen(2), "one token, one user data")
	md := w.deployment(t)
	g.Expect(md.Spec.ClusterName).To(Equal("demo-abcde"))
	g.Expect(*md.Spec.Replicas).To(BeEquivalentTo(2))
	userData := &corev1.Secret{}
	g.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.hcpNS, Name: *md.Spec.Template.Spec.Bootstrap.DataSecretName}, userData)).To(Succeed())
	hash, ok := token.HashOf("workers", userData.Name)
	g.Expect(ok).To(BeTrue())
	tokenSecret := &corev1.Secret{}
	g.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.hcpNS, Name: token.Name("workers", hash)}, tokenSecret)).To(Succeed())
	g.Expect(tokenSecret.Annotations).To(And(HaveKeyWithValue(hyperv1.TokenSecretAnnotation, "true"), HaveKeyWithValue(hyperv1.NodePoolAnnotation, w.ns+"/workers")))
	templates := &infrav1.LocalMachineTemplateList{}
	g.Expect(w.client.List(t.Context(), templates, client.InNamespace(w.hcpNS))).To(Succeed())
	g.Expect(templates.Items).To(HaveLen(1))
	g.Expect(md.Spec.Template.Spec.InfrastructureRef.Name).To(Equal(templates.Items[0].Name))
	g.Expect(templates.Items[0].Spec.Template.Spec.Image).To(Equal("registry/local-node@sha256:1.36.3"))
}

func TestReconcile(t *testing.T) {
	t.Run("When a NodePool is valid it should make what machines are made from, and then be quiet", func(t *testing.T) {
		w := newWorld(t)
		g := NewWithT(t)
		g.Expect(w.client.Create(t.Context(), examplePool(w.ns))).To(Succeed())
		g.Expect(w.settle(t.Context(), w.client)).To(Succeed())
		w.expectPool(t)
		w.expectJournal(t)
		testenv.ExpectQuiet(t, w.client, func(c client.WithWatch) error {
			_, err := w.reconciler(c).Reconcile(t.Context(), w.request())
			return err
		})
		for conditionType, want := range map[string]string{
			hyperv1.NodePoolAutoscalingEnabledConditionType: "False/AsExpected", hyperv1.NodePoolUpdateManagementEnabledConditionType: "True/AsExpected",
			hyperv1.NodePoolValidReleaseImageConditionType: "True/AsExpected", hyperv1.NodePoolValidPlatformConfigConditionType: "True/AsExpected",
			hyperv1.NodePoolValidArchPlatform: "True/AsExpected", hyperv1.NodePoolReconciliationActiveConditionType: "True/ReconciliationActive",
			hyperv1.NodePoolSupportedVersionSkewConditionType: "True/AsExpected", hyperv1.NodePoolValidMachineConfigConditionType: "True/AsExpected",
			hyperv1.NodePoolValidTuningConfigConditionType: "True/AsExpected", hyperv1.NodePoolUpdatingVersionConditionType: "True/AsExpected",
			hyperv1.NodePoolUpdatingConfigConditionType: "True/AsExpected", hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType: "True/AsExpected",
			hyperv1.NodePoolValidGeneratedPayloadConditionType: "Unknown/StatusUnknown", hyperv1.NodePoolReachedIgnitionEndpoint: "False/ignitionNotReached",
			hyperv1.NodePoolAllMachinesReadyConditionType: "False/NotFound", hyperv1.NodePoolAllNodesHealthyConditionType: "False/NotFound",
			hyperv1.NodePoolAutorepairEnabledConditionType: "False/AsExpected", hyperv1.NodePoolReadyConditionType: "False/WaitingForAvailable",
			hyperv1.NodePoolValidMachineTemplateConditionType: "", hyperv1.NodePoolClusterNetworkCIDRConflictType: "", hyperv1.IgnitionEndpointAvailable: "",
		} {
			g.Expect(w.condition(t, conditionType)).To(Equal(want), conditionType)
		}
	})
}

func TestCrashAtEveryWrite(t *testing.T) {
	fresh := func(t testing.TB) testenv.CrashCase {
		w := newWorld(t)
		NewWithT(t).Expect(w.client.Create(t.Context(), examplePool(w.ns))).To(Succeed())
		return testenv.CrashCase{
			Client: w.client,
			Run:    func(c client.WithWatch) error { return w.settle(t.Context(), c) },
			Check:  w.expectPool,
		}
	}
	testenv.CrashAtEveryWrite(t, 1, fresh)
	testenv.Storm(t, 2, fresh)
}

func TestMissingPlatform(t *testing.T) {
	t.Run("When the platform's kinds are not installed the pool should have no machine templates left", func(t *testing.T) {
		w := newWorld(t)
		var left remains
		err := w.reconciler(w.client).remainingTemplates(t.Context(), schema.GroupVersionKind{Group: "nobody.example", Version: "v1", Kind: "MachineTemplate"}, w.hcpNS, w.ns+"/workers", &left)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
}

func TestCrashAtEveryWriteOfDeletion(t *testing.T) {
	fresh := func(t testing.TB) testenv.CrashCase {
		w := newWorld(t)
		g := NewWithT(t)
		g.Expect(w.client.Create(t.Context(), examplePool(w.ns))).To(Succeed())
		g.Expect(w.settle(t.Context(), w.client)).To(Succeed())
		g.Expect(w.client.Delete(t.Context(), w.pool(t))).To(Succeed())
		return testenv.CrashCase{
			Client: w.client,
			Run:    func(c client.WithWatch) error { return w.settle(t.Context(), c) },
			Check: func(t testing.TB) {
				NewWithT(t).Expect(apierrors.IsNotFound(w.client.Get(t.Context(), w.request().NamespacedName, &hyperv1.NodePool{}))).To(BeTrue())
				w.expectNothing(t)
			},
		}
	}
	testenv.CrashAtEveryWrite(t, 1, fresh)
	testenv.Storm(t, 2, fresh)
}
