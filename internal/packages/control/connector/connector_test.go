package connector

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/owner"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

func TestConnector(t *testing.T) {
	hosted := testenv.StartOther(t)
	p := newPair(t, hosted)
	p.publish(t, hosted.Kubeconfig(t))
	p.connect(t)

	t.Run("When phases for both clusters are mixed it should roll them out in order", func(t *testing.T) {
		g := NewWithT(t)
		role := packagestest.Object(map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "addon"}, "rules": []any{},
		})
		os := packagestest.ObjectSet(p.ns, "mixed", 1,
			hostedPhase("role", role), hostedPhase("first", configMap("inside", "a")), packagestest.Phase("second", packagestest.ConfigMap("beside", nil)), hostedPhase("third", configMap("last", "c")))
		p.create(t, os)
		os = p.setIs(t, "mixed", metav1.ConditionTrue, v1alpha1.ReasonAvailable)

		var live, beside, last corev1.ConfigMap
		g.Expect(p.there.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "inside"}, &live)).To(Succeed())
		g.Expect(p.Client.Get(t.Context(), client.ObjectKey{Namespace: p.ns, Name: "beside"}, &beside)).To(Succeed())
		g.Expect(p.there.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "last"}, &last)).To(Succeed())
		g.Expect(live.CreationTimestamp.Time).NotTo(BeTemporally(">", last.CreationTimestamp.Time))
		osp := p.phaseIs(t, "mixed-first", metav1.ConditionTrue, v1alpha1.ReasonAvailable)
		owners, err := owner.Annotation{}.Read(&live)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(owners).To(ConsistOf(owner.Entry{
			APIVersion: "package-operator.run/v1alpha1", Kind: "ObjectSetPhase", Name: "mixed-first", Namespace: p.ns, UID: osp.UID, Controller: true,
		}))
		g.Expect(live.OwnerReferences).To(BeEmpty())
		g.Expect(live.Labels).To(HaveKeyWithValue(v1alpha1.CacheLabel, "True"))
		g.Expect(live.Annotations).To(HaveKeyWithValue(v1alpha1.RevisionAnnotation, "1"))
		g.Expect(os.Status.ControllerOf).To(HaveLen(4))
		g.Expect(osp.Status.ControllerOf).To(HaveLen(1))
	})
	t.Run("When somebody changes or deletes an object over there it should put it back", func(t *testing.T) {
		cm := remoteConfigMap("last")
		if err := p.there.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"changed"}}`))); err != nil {
			t.Fatal(err)
		}
		p.eventually(t, cm, is(cm, "c"))
		uid := cm.UID
		if err := p.there.Delete(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		p.eventually(t, cm, func() error {
			if cm.UID == uid {
				return fmt.Errorf("still the old one")
			}
			return is(cm, "c")()
		})
	})
	t.Run("When nothing changes it should write nothing", func(t *testing.T) {
		osp := p.phaseIs(t, "mixed-third", metav1.ConditionTrue, v1alpha1.ReasonAvailable)
		p.unchanged(t, p.Client, osp, 2*time.Second)
		p.unchanged(t, p.there, remoteConfigMap("last"), time.Second)
	})
	t.Run("When a probe fails over there it should stop before the next phase", func(t *testing.T) {
		g := NewWithT(t)
		os := packagestest.ObjectSet(p.ns, "probed", 1, hostedPhase("a", configMap("probed", "no")), packagestest.Phase("b", packagestest.ConfigMap("behind-probe", nil)))
		os.Spec.AvailabilityProbes = []v1alpha1.ObjectSetProbe{packagestest.Probe("ConfigMap", ".data.key", ".metadata.name")}
		p.create(t, os)
		p.phaseIs(t, "probed-a", metav1.ConditionFalse, v1alpha1.ReasonProbeFailure)
		os = p.setIs(t, "probed", metav1.ConditionFalse, v1alpha1.ReasonProbeFailure)
		g.Expect(message(os.Status.Conditions)).To(HavePrefix(`Phase "a" failed: `))
		g.Expect(p.Client.Get(t.Context(), client.ObjectKey{Namespace: p.ns, Name: "behind-probe"}, &corev1.ConfigMap{})).NotTo(Succeed())
	})
	t.Run("When an object over there is somebody else's it should leave it alone", func(t *testing.T) {
		g := NewWithT(t)
		foreign := remoteConfigMap("foreign")
		foreign.Data = map[string]string{"key": "theirs"}
		g.Expect(p.there.Create(t.Context(), foreign)).To(Succeed())
		p.create(t, packagestest.ObjectSet(p.ns, "collides", 1, hostedPhase("a", configMap("foreign", "ours"))))
		osp := p.phaseIs(t, "collides-a", metav1.ConditionFalse, v1alpha1.ReasonProbeFailure)
		g.Expect(message(osp.Status.Conditions)).To(ContainSubstring("refusing adoption"))
		os := p.setIs(t, "collides", metav1.ConditionFalse, v1alpha1.ReasonProbeFailure)
		p.eventually(t, foreign, is(foreign, "theirs"))
		g.Expect(p.Client.Delete(t.Context(), os)).To(Succeed())
		p.World.Gone(t, os)
		p.eventually(t, foreign, is(foreign, "theirs"))
	})
	t.Run("When a deployment changes it should hand objects over and archive the old revision", func(t *testing.T) {
		g := NewWithT(t)
		od := packagestest.ObjectDeployment(p.ns, "app", hostedPhase("a", configMap("kept", "1"), configMap("dropped", "1")))
		p.create(t, od)
		kept, dropped := remoteConfigMap("kept"), remoteConfigMap("dropped")
		p.eventually(t, dropped, exists)
		p.eventually(t, kept, is(kept, "1"))
		uid := kept.UID
		g.Eventually(func() error {
			if err := p.Client.Get(t.Context(), client.ObjectKeyFromObject(od), od); err != nil {
				return err
			}
			od.Spec.Template.Spec.Phases = []v1alpha1.ObjectSetTemplatePhase{hostedPhase("a", configMap("kept", "2"))}
			return p.Client.Update(t.Context(), od)
		}).Should(Succeed())
		p.eventually(t, kept, is(kept, "2"))
		p.gone(t, dropped)
		g.Expect(kept.UID).To(Equal(uid))
		g.Expect(kept.Annotations).To(HaveKeyWithValue(v1alpha1.RevisionAnnotation, "2"))
	})
	t.Run("When a revision is paused it should leave drift", func(t *testing.T) {
		g := NewWithT(t)
		os := packagestest.ObjectSet(p.ns, "paused", 1, hostedPhase("a", configMap("still", "1")))
		p.create(t, os)
		p.setIs(t, "paused", metav1.ConditionTrue, v1alpha1.ReasonAvailable)
		pause(t, p, os, v1alpha1.LifecycleStatePaused)
		p.Eventually(t, os, packagestest.HasCondition(os, &os.Status.Conditions, v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused, ""))
		cm := remoteConfigMap("still")
		g.Expect(p.there.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"changed"}}`)))).To(Succeed())
		p.phaseIs(t, "paused-a", metav1.ConditionTrue, v1alpha1.ReasonAvailable)
		p.eventually(t, cm, is(cm, "changed"))
		pause(t, p, os, v1alpha1.LifecycleStateActive)
		p.eventually(t, cm, is(cm, "1"))
	})
	t.Run("When a revision is deleted it should delete what is over there first", func(t *testing.T) {
		g := NewWithT(t)
		os := packagestest.ObjectSet(p.ns, "mixed", 1)
		g.Expect(p.Client.Delete(t.Context(), os)).To(Succeed())
		p.World.Gone(t, os)
		p.gone(t, remoteConfigMap("last"))
		g.Expect(p.Client.Get(t.Context(), client.ObjectKey{Namespace: p.ns, Name: "beside"}, &corev1.ConfigMap{})).NotTo(Succeed())
	})
}

func is(cm *corev1.ConfigMap, value string) func() error {
	return func() error {
		if cm.Data["key"] != value {
			return fmt.Errorf("key is %q, want %q", cm.Data["key"], value)
		}
		return nil
	}
}

func pause(t *testing.T, p *pair, os *v1alpha1.ObjectSet, state v1alpha1.LifecycleState) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"lifecycleState":%q}}`, state)
	if err := p.Client.Patch(t.Context(), os, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func TestOutage(whole *testing.T) {
	t := whole
	hosted := testenv.StartOther(t)
	p := newPair(t, hosted)

	// The process starts with no kubeconfig at all.
	p.create(t, packagestest.ObjectSet(p.ns, "app", 1, hostedPhase("a", configMap("app", "1"))))
	p.create(t, packagestest.ObjectSet(p.ns, "other", 1, hostedPhase("a", configMap("other", "1"))))
	stop := p.connect(t)
	t.Run("When there is no kubeconfig it should say so", func(t *testing.T) {
		osp := p.phaseIs(t, "app-a", metav1.ConditionUnknown, v1alpha1.ReasonTargetUnreachable)
		NewWithT(t).Expect(message(osp.Status.Conditions)).To(ContainSubstring("kubeconfig"))
	})
	t.Run("When the kubeconfig comes it should roll out", func(t *testing.T) {
		p.publish(t, hosted.Kubeconfig(t))
		p.setIs(t, "app", metav1.ConditionTrue, v1alpha1.ReasonAvailable)
	})
	t.Run("When the API is killed it should say so, and write nothing more", func(t *testing.T) {
		g := NewWithT(t)
		hosted.KillServer()
		os := &v1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "app"}}
		g.Eventually(func() string {
			g.Expect(p.Client.Get(t.Context(), client.ObjectKeyFromObject(os), os)).To(Succeed())
			return message(os.Status.Conditions)
		}, packagestest.Timeout).Should(Equal(`Phase "a" failed: the target cluster's API server can't be reached: connection refused`))
		osp := p.phaseIs(t, "app-a", metav1.ConditionUnknown, v1alpha1.ReasonTargetUnreachable)
		g.Expect(message(osp.Status.Conditions)).To(ContainSubstring("connection refused"))
		g.Expect(osp.Status.ControllerOf).To(HaveLen(1), "what was there may still be there")
		p.unchanged(t, p.Client, osp, 3*time.Second)
	})
	t.Run("When a revision is deleted meanwhile it should wait", func(t *testing.T) {
		os := packagestest.ObjectSet(p.ns, "other", 1)
		NewWithT(t).Expect(p.Client.Delete(t.Context(), os)).To(Succeed())
		osp := p.phaseIs(t, "other-a", metav1.ConditionUnknown, v1alpha1.ReasonTargetUnreachable)
		p.Eventually(t, osp, func() error {
			c := meta.FindStatusCondition(osp.Status.Conditions, v1alpha1.ConditionAvailable)
			if osp.DeletionTimestamp == nil || c == nil || c.ObservedGeneration != osp.Generation {
				return fmt.Errorf("not being deleted, or status does not say so yet")
			}
			return nil
		})
		p.unchanged(t, p.Client, osp, time.Second)
	})
	t.Run("When the connector is started again meanwhile it should say the same", func(t *testing.T) {
		stop()
		p.connect(whole) // until all is over
		p.create(t, packagestest.ObjectSet(p.ns, "late", 1, hostedPhase("a", configMap("late", "1"))))
		p.phaseIs(t, "late-a", metav1.ConditionUnknown, v1alpha1.ReasonTargetUnreachable)
	})
	t.Run("When the API is back it should go on by itself", func(t *testing.T) {
		hosted.RestartServer(t)
		p.setIs(t, "app", metav1.ConditionTrue, v1alpha1.ReasonAvailable)
		p.setIs(t, "late", metav1.ConditionTrue, v1alpha1.ReasonAvailable)
		p.World.Gone(t, packagestest.ObjectSet(p.ns, "other", 1))
		p.gone(t, remoteConfigMap("other"))
		cm := remoteConfigMap("app")
		p.eventually(t, cm, is(cm, "1"))
	})
	t.Run("When the kubeconfig is rotated it should use the new one", func(t *testing.T) {
		p.publish(t, p.Env.Kubeconfig(t)) // of a cluster that the objects are not in
		there := p.there
		p.there = p.Client
		p.eventually(t, remoteConfigMap("app"), exists)
		p.there = there
		p.publish(t, []byte("not a kubeconfig, with a secret in it"))
		osp := p.phaseIs(t, "app-a", metav1.ConditionUnknown, v1alpha1.ReasonTargetUnreachable)
		NewWithT(t).Expect(message(osp.Status.Conditions)).NotTo(ContainSubstring("secret"))
		p.publish(t, hosted.Kubeconfig(t))
		p.phaseIs(t, "app-a", metav1.ConditionTrue, v1alpha1.ReasonAvailable)
	})
}
