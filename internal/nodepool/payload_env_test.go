package nodepool

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/testenv"
)

func TestPayloadOnAPIServer(t *testing.T) {
	t.Run("When a NodePool has an OpenShift release it should get its Secrets once the control plane has said all, and then be quiet", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		obs := example(t, payloadExample)
		w.releases = release.ProviderFunc(func(_ context.Context, _ string, _ []byte) (*release.Release, error) { return obs.release, nil })
		hc := &hyperv1.HostedCluster{}
		g.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "demo"}, hc)).To(Succeed())
		hc.Status.ControlPlaneEndpoint = obs.hc.Status.ControlPlaneEndpoint
		hc.Status.Version.History[0].Version, hc.Status.Version.Desired.Version = "4.20.3", "4.20.3"
		g.Expect(w.client.Status().Update(t.Context(), hc)).To(Succeed())
		pool := examplePool(w.ns, func(np *hyperv1.NodePool) { np.Spec.Platform.Type = hyperv1.NonePlatform })
		// The type of a HostedCluster's platform can't be changed, so this pass sees another one.
		pass := func(c client.Client) error {
			r := w.reconciler(otherPlatform{Client: c, platform: hyperv1.NonePlatform})
			r.Platforms = platform.Enabled{hyperv1.NonePlatform}
			_, err := r.Reconcile(t.Context(), w.request())
			return err
		}
		g.Expect(w.client.Create(t.Context(), pool)).To(Succeed())
		for range 4 {
			g.Expect(pass(w.client)).To(Succeed())
		}
		g.Expect(w.condition(t, hyperv1.NodePoolValidMachineConfigConditionType)).To(Equal("False/" + ReasonWaitingForHostedCluster))
		for name, source := range map[string]string{"ignition-config-fips": obs.coreConfig[0].Data, "ignition-config-worker-ssh": obs.coreConfig[1].Data} {
			g.Expect(w.client.Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.hcpNS, Name: name, Labels: map[string]string{hyperv1.CoreIgnitionConfigLabel: "true"}},
				Data:       map[string]string{"config": source},
			})).To(Succeed())
		}
		for range 4 {
			g.Expect(pass(w.client)).To(Succeed())
		}
		for conditionType, want := range map[string]string{
			hyperv1.NodePoolValidReleaseImageConditionType: "True/AsExpected", hyperv1.NodePoolValidMachineConfigConditionType: "True/AsExpected",
			hyperv1.NodePoolValidPlatformImageType: "True/AsExpected", hyperv1.NodePoolValidGeneratedPayloadConditionType: "Unknown/StatusUnknown",
		} {
			g.Expect(w.condition(t, conditionType)).To(Equal(want), conditionType)
		}
		secrets := &corev1.SecretList{}
		g.Expect(w.client.List(t.Context(), secrets, client.InNamespace(w.hcpNS), client.MatchingLabels(ownLabels()))).To(Succeed())
		g.Expect(secrets.Items).To(HaveLen(2), "one token, one user data")
		for _, s := range secrets.Items {
			if s.Annotations[hyperv1.TokenSecretAnnotation] == "true" {
				g.Expect(s.Data).To(HaveKeyWithValue(token.ReleaseVersionKey, []byte("4.20.3")))
			}
		}
		testenv.ExpectQuiet(t, w.client, func(c client.WithWatch) error { return pass(c) })

		// The copy of the user's settings would have the name of what another pool, or a component, has there.
		foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcpNS, Name: "kubelet-" + pool.Name, Labels: map[string]string{hyperv1.NodePoolLabel: "another"}},
			Data: map[string]string{"config": "of another pool"}}
		g.Expect(w.client.Create(t.Context(), foreign)).To(Succeed())
		g.Expect(w.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "kubelet"}, Data: map[string]string{"config": kubeletManifest}})).To(Succeed())
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"config":[{"name":"kubelet"}]}}`))
		g.Expect(w.client.Patch(t.Context(), pool, patch)).To(Succeed())
		for range 4 {
			g.Expect(pass(w.client)).To(Succeed())
		}
		g.Expect(w.condition(t, hyperv1.NodePoolValidTuningConfigConditionType)).To(Equal("False/" + hyperv1.NodePoolValidationFailedReason))
		live := &corev1.ConfigMap{}
		g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), live)).To(Succeed())
		g.Expect(live.Data).To(Equal(foreign.Data), "When another pool has a ConfigMap of the copy's name it should be left alone")
		g.Expect(live.Labels).To(Equal(foreign.Labels))
		g.Expect(w.client.Delete(t.Context(), foreign)).To(Succeed())
		for range 4 {
			g.Expect(pass(w.client)).To(Succeed())
		}
		g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), live)).To(Succeed())
		g.Expect(live.Data).To(HaveKeyWithValue("config", kubeletManifest))
	})
}

// otherPlatform has HostedClusters seem to be of another platform.
type otherPlatform struct {
	client.Client
	platform hyperv1.PlatformType
}

func (o otherPlatform) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := o.Client.Get(ctx, key, obj, opts...)
	if hc, ok := obj.(*hyperv1.HostedCluster); ok {
		hc.Spec.Platform = hyperv1.PlatformSpec{Type: o.platform}
	}
	return err
}
