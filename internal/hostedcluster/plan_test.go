package hostedcluster

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/statetest"
	"hcp.internal/platform/internal/hostedcluster/status"
	"hcp.internal/platform/internal/hostedcluster/step"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
)

func TestPause(t *testing.T) {
	t.Run("When a cluster is paused it should pass on nothing but the pause, and come back when it ends", func(t *testing.T) {
		g := NewWithT(t)
		obs := statetest.Seen(func(obs *state.Observed) {
			obs.HC.Spec.PausedUntil = ptr.To("2026-01-02T13:00:00Z")
			obs.HC.Spec.Channel = "changed"
			obs.HCP = &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}, Spec: hyperv1.HostedControlPlaneSpec{Channel: "as-it-was"}}
		})
		p := planFor(obs, status.Set(obs, statetest.Noon), statetest.Noon, options{})
		g.Expect(p.recheckAfter).To(BeNumerically("~", time.Hour, 2*time.Second))
		g.Expect(p.steps).To(HaveLen(1))
		hcp := p.steps[0].Apply[0].(*hyperv1.HostedControlPlane)
		g.Expect(hcp.Spec.PausedUntil).To(HaveValue(Equal("2026-01-02T13:00:00Z")))
		g.Expect(hcp.Spec.Channel).To(Equal("as-it-was"))
	})
}

// No gate that is closed lets anything be written but the mark on the user's own objects.
func TestClosedGatesWriteNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obs := statetest.Seen()
		broken := false
		for _, b := range []func(){
			func() { obs.HC.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "10.132.0.0/16"}} },
			func() { _, obs.PlatformErr = platform.For("Moon"); obs.Platform = nil },
			func() {
				obs.ReleaseErr = fmt.Errorf("x: %w", release.ErrNotFound)
				obs.Target, obs.UserRelease = nil, nil
			},
			func() { obs.Target, obs.UserRelease = statetest.ReleaseOf("x:1.20.0"), statetest.ReleaseOf("x:1.20.0") },
			func() {
				obs.Sources[sources.Key{Kind: sources.Secret, Name: "pull"}] = sources.Object{Missing: true}
				obs.Target, obs.UserRelease = nil, nil
				obs.ReleaseErr = errors.New("no secret")
			},
			func() { obs.Namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo"}} },
		} {
			if rapid.Bool().Draw(t, "broken") {
				b()
				broken = true
			}
		}
		p := planFor(obs, status.Set(obs, statetest.Noon), statetest.Noon, options{})
		writes := slices.ContainsFunc(p.steps, func(s step.Step) bool { return s.Create != nil || len(s.Apply)+len(s.Delete) > 0 })
		if writes == broken {
			t.Fatalf("broken: %v, writes: %v", broken, writes)
		}
		again := planFor(obs, status.Set(obs, statetest.Noon), statetest.Noon, options{})
		if !reflect.DeepEqual(p.steps, again.steps) {
			t.Fatal("the plan is not the same twice")
		}
	})
}

func TestUpgradeAllowed(t *testing.T) {
	upgrade := func(upgradeable metav1.ConditionStatus, more ...func(*state.Observed)) *state.Observed {
		obs := statetest.Seen(func(obs *state.Observed) {
			obs.HC.Spec.Release.Image = statetest.Image136
			obs.Target, obs.UserRelease = statetest.ReleaseOf(statetest.Image136), statetest.ReleaseOf(statetest.Image136)
			obs.HC.Status.Version = &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Image: statetest.Image135, Version: "1.35.4"}}
			conditions.Set(&obs.HC.Status.Conditions, statetest.Noon, conditions.New(hyperv1.ClusterVersionUpgradeable, upgradeable, "X", "etcd is sick"))
			obs.HCP = &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: statetest.Image135}}
			obs.HCP.Status.VersionStatus = obs.HC.Status.Version.DeepCopy()
			obs.HCP.Status.Conditions = slices.Clone(obs.HC.Status.Conditions)
		})
		for _, m := range more {
			m(obs)
		}
		return obs
	}
	annotate := func(image string) func(*state.Observed) {
		return func(obs *state.Observed) { obs.HC.Annotations[hyperv1.ForceUpgradeToAnnotation] = image }
	}
	for name, tc := range map[string]struct {
		obs  *state.Observed
		says string
	}{
		"When the cluster is upgradeable it should be allowed":              {obs: upgrade(metav1.ConditionTrue)},
		"When nothing is known it should be allowed":                        {obs: upgrade(metav1.ConditionUnknown)},
		"When it is not upgradeable it should say why, and how to force it": {obs: upgrade(metav1.ConditionFalse), says: "not upgradeable from 1.35.4 to 1.36.3: etcd is sick (to upgrade all the same, set annotation hypershift.openshift.io/force-upgrade-to"},
		"When it is forced to this image it should be allowed":              {obs: upgrade(metav1.ConditionFalse, annotate(statetest.Image136))},
		"When it is forced to another image it should be refused":           {obs: upgrade(metav1.ConditionFalse, annotate("other")), says: `names "other", but the wanted release is`},
		"When it is a patch it should be allowed": {obs: upgrade(metav1.ConditionFalse, func(obs *state.Observed) {
			obs.HC.Status.Version.Desired.Version = "1.36.1"
		})},
		"When the upgrade has begun it should go on": {obs: upgrade(metav1.ConditionFalse, func(obs *state.Observed) {
			obs.HCP = &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: statetest.Image136}}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := status.UpgradeAllowed(tc.obs)
			if tc.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			g.Expect(planFor(tc.obs, status.Set(tc.obs, statetest.Noon), statetest.Noon, options{}).steps).To(BeEmpty())
			c := conditions.Get(tc.obs.HC.Status.Conditions, hyperv1.HostedClusterProgressing)
			g.Expect(c.Reason).To(Equal(hyperv1.BlockedReason))
			g.Expect(c.Message).To(ContainSubstring(tc.says))
		})
	}
}
