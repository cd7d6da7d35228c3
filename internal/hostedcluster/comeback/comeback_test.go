package comeback

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/upgrades"
	"hcp.internal/platform/internal/controlplane/trouble"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/statetest"
	"hcp.internal/platform/internal/hostedcluster/status"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/release"
)

// fails is an upgrade from 1.35.3 to 1.35.4 that fails for an hour.
func fails(edit ...func(*Case)) Case {
	c := Case{option: "true", asked: statetest.Image135, target: statetest.ReleaseOf(statetest.Image135), before: statetest.ReleaseOf(statetest.Image1353), last: &configv1.UpdateHistory{Image: statetest.Image1353, Version: "1.35.3", State: configv1.CompletedUpdate},
		under: true, failing: "kube-apiserver does not start", since: statetest.Noon.Add(-time.Hour), now: statetest.Noon}
	for _, e := range edit {
		e(&c)
	}
	return c
}

func TestComebackDecision(t *testing.T) {
	etcd := func(before, target string) func(*Case) {
		return func(c *Case) {
			c.before.ComponentVersions, c.target.ComponentVersions = map[string]string{"etcd": before}, map[string]string{"etcd": target}
		}
	}
	for name, tc := range map[string]struct {
		in     Case
		back   bool
		reason string // of the condition; empty: there is none
		says   string
		left   time.Duration
	}{
		"When an upgrade has failed for long enough it should go back":  {in: fails(), back: true},
		"When nobody asks for it it should stay":                        {in: fails(func(c *Case) { c.option = "" })},
		"When it is switched off it should stay":                        {in: fails(func(c *Case) { c.option = "false" })},
		"When the value means nothing it should say so":                 {in: fails(func(c *Case) { c.option = "yes" }), reason: upgrades.InvalidReason, says: `is "yes": write true`},
		"When nothing fails it should stay":                             {in: fails(func(c *Case) { c.failing = "" }), reason: upgrades.NotFailedReason},
		"When no upgrade is under way it should stay":                   {in: fails(func(c *Case) { c.under = false }), reason: upgrades.NotFailedReason},
		"When the cluster is paused or a gate is closed it should stay": {in: fails(func(c *Case) { c.held = true }), reason: upgrades.NotFailedReason},
		"When it fails for a minute it should say when it goes back":    {in: fails(func(c *Case) { c.since = statetest.Noon.Add(-time.Minute) }), reason: upgrades.FailingReason, says: "goes back to 1.35.3 if it still does at 2026-01-02T12:09:00Z", left: 9 * time.Minute},
		"When somebody gives it more time it should have that":          {in: fails(func(c *Case) { c.option = "2h" }), reason: upgrades.FailingReason, left: time.Hour},
		"When the release of before can't be read it should say so":     {in: fails(func(c *Case) { c.before = nil }), reason: upgrades.ImpossibleReason, says: "can't be read"},
		"When there was no release before it should say so":             {in: fails(func(c *Case) { c.last, c.before = nil, nil }), reason: upgrades.ImpossibleReason, says: "no release has been rolled out completely before"},
		"When the minor version is another one it should not go back":   {in: fails(func(c *Case) { c.target = statetest.ReleaseOf(statetest.Image136) }), reason: upgrades.ImpossibleReason, says: "another minor version"},
		"When it is an OpenShift payload it should not go back":         {in: fails(func(c *Case) { c.target.Kubernetes = false }), reason: upgrades.ImpossibleReason, says: "OpenShift payloads"},
		"When the control plane has a release of its own it should not": {in: fails(func(c *Case) { c.separate = true }), reason: upgrades.ImpossibleReason, says: "spec.controlPlaneRelease"},
		"When etcd has another patch it should go back":                 {in: fails(etcd("3.6.7", "3.6.8")), back: true},
		"When etcd has another minor version it should not go back":     {in: fails(etcd("3.6.8", "3.7.0")), reason: upgrades.ImpossibleReason, says: `etcd has version "3.6.8"`},
		"When one release does not say which etcd it has it should not": {in: fails(etcd("", "3.7.0")), reason: upgrades.ImpossibleReason, says: "its files do not go back"},
		"When it went back already it should say so, and not go back again": {in: fails(func(c *Case) {
			c.note = &upgrades.Note{From: statetest.Image135, To: statetest.Image1353, FromVersion: "1.35.4", ToVersion: "1.35.3", At: statetest.Noon, Why: "x"}
		}), reason: upgrades.FailedReason, says: "went back to 1.35.3"},
		"When it went back and that is switched off since it should stay so": {in: fails(func(c *Case) { c.option = ""; c.note = &upgrades.Note{FromVersion: "1.35.4", ToVersion: "1.35.3"} }), reason: upgrades.FailedReason},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := tc.in.Decide()
			g.Expect(v.Note != nil).To(Equal(tc.back))
			g.Expect(v.Left).To(Equal(tc.left))
			if tc.reason == "" {
				g.Expect(v.condition).To(BeNil())
			} else {
				g.Expect(v.condition.Reason).To(Equal(tc.reason), v.condition.Message)
				g.Expect(v.condition.Message).To(ContainSubstring(tc.says))
			}
		})
	}
	t.Run("When it goes back the note should say from where, to where and why", func(t *testing.T) {
		NewWithT(t).Expect(*fails().Decide().Note).To(Equal(upgrades.Note{From: statetest.Image135, To: statetest.Image1353, FromVersion: "1.35.4", ToVersion: "1.35.3", At: statetest.Noon.Truncate(time.Second), Why: "kube-apiserver does not start"}))
	})
}

// upgrading is the world of an upgrade from 1.35.3 to 1.35.4 that was taken up at started, and fails since failing as far as the control plane tells.
func upgrading(started, failing time.Time, edit ...func(*state.Observed)) *state.Observed {
	return statetest.Seen(func(obs *state.Observed) {
		obs.HC.Annotations[upgrades.ReturnAnnotation] = "true"
		obs.Before, obs.Last = statetest.ReleaseOf(statetest.Image1353), &configv1.UpdateHistory{Image: statetest.Image1353, Version: "1.35.3", State: configv1.CompletedUpdate}
		obs.HCP = &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Generation: 7}, Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: statetest.Image135}}
		obs.HCP.Status.VersionStatus = &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Image: statetest.Image135, Version: "1.35.4"},
			History: []configv1.UpdateHistory{{Image: statetest.Image135, Version: "1.35.4", State: configv1.PartialUpdate, StartedTime: metav1.NewTime(started)}, *obs.Last}}
		obs.HCP.Status.Conditions = []metav1.Condition{{Type: hyperv1.ClusterVersionSucceeding, Status: metav1.ConditionFalse, Reason: hyperv1.FromClusterVersionReason,
			Message: "kube-apiserver does not start", ObservedGeneration: 7, LastTransitionTime: metav1.NewTime(failing)}}
		for _, e := range edit {
			e(obs)
		}
		status.Set(obs, failing) // what passes before this one have reported
	})
}

// TestFailure has an upgrade that fails, as a pass finds it at noon: it goes back when it has failed for ten minutes while the cluster was awake.
func TestFailure(t *testing.T) {
	ago := func(d time.Duration) time.Time { return statetest.Noon.Add(-d) }
	// another is the world just after the release was named: the control plane has told of nothing but the one before.
	another := func(obs *state.Observed) {
		obs.HCP.Status.VersionStatus.History[0].Image, obs.HCP.Status.VersionStatus.History[0].Version = "reg.example.com/release:1.35.2", "1.35.2"
	}
	noOperator := func(since time.Time) func(*state.Observed) {
		return func(obs *state.Observed) {
			obs.Troubles = []trouble.Trouble{{Component: names.ControlPlaneOperator, Reason: trouble.ImagePullBackOff, Message: "pod x can't get image"}}
			obs.OperatorSince = since
		}
	}
	wakes := func(obs *state.Observed) {
		obs.HCP.Status.Conditions = append(obs.HCP.Status.Conditions, conditions.False(hyperv1.HostedClusterHibernated, hyperv1.WakingReason, "the control plane is on its way up"))
	}
	both := func(edits ...func(*state.Observed)) func(*state.Observed) {
		return func(obs *state.Observed) {
			for _, e := range edits {
				e(obs)
			}
		}
	}
	for name, tc := range map[string]struct {
		obs    *state.Observed
		then   func(*state.Observed) // what has changed since the passes before
		back   bool
		reason string
		left   time.Duration
	}{
		"When the release has failed for long enough it should go back": {obs: upgrading(ago(2*time.Hour), ago(time.Hour)), back: true},
		"When the release before has failed for hours another one should be tried": {
			obs: upgrading(ago(2*time.Hour), ago(2*time.Hour), another), reason: upgrades.NotFailedReason},
		"When the control plane has not told of the spec as it is nothing should count as failed": {
			obs: upgrading(ago(2*time.Hour), ago(2*time.Hour), func(obs *state.Observed) { obs.HCP.Generation++ }), reason: upgrades.NotFailedReason},
		"When the release began to fail where the one before had stopped it should have its own time": {
			obs: upgrading(ago(time.Minute), ago(2*time.Hour)), reason: upgrades.FailingReason, left: 9 * time.Minute},
		"When the operator has not run for long enough it should go back": {obs: upgrading(ago(2*time.Hour), ago(time.Hour), noOperator(ago(time.Hour))), back: true},
		"When the operator has not run since before the release it should have its own time": {
			obs: upgrading(ago(time.Minute), ago(2*time.Hour), noOperator(time.Time{})), reason: upgrades.FailingReason, left: 9 * time.Minute},
		"When the operator of another release was deployed a minute ago it should have its time": {
			obs: upgrading(ago(2*time.Hour), ago(2*time.Hour), both(another, noOperator(ago(time.Minute)))), reason: upgrades.FailingReason, left: 9 * time.Minute},
		"When the cluster wakes it should not count what it lacks": {obs: upgrading(ago(12*time.Hour), ago(11*time.Hour), wakes), reason: upgrades.NotFailedReason},
		"When the cluster is awake again the time it slept should not count": {
			obs: upgrading(ago(12*time.Hour), ago(11*time.Hour), wakes), then: func(obs *state.Observed) {
				conditions.Remove(&obs.HCP.Status.Conditions, hyperv1.HostedClusterHibernated)
			}, reason: upgrades.FailingReason, left: 10 * time.Minute},
		"When the cluster can't wake as the operator does not run it should go back": {
			obs: upgrading(ago(12*time.Hour), ago(11*time.Hour), both(wakes, noOperator(ago(11*time.Hour)))), back: true},
		"When the cluster began to wake a minute ago and the operator does not run it should have its time": {
			obs: upgrading(ago(12*time.Hour), ago(11*time.Hour), both(wakes, noOperator(ago(11*time.Hour)))), then: func(obs *state.Observed) {
				conditions.Get(obs.HC.Status.Conditions, hyperv1.HostedClusterHibernated).LastTransitionTime = metav1.NewTime(ago(time.Minute))
			}, reason: upgrades.FailingReason, left: 9 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if tc.then != nil {
				tc.then(tc.obs)
			}
			v := Of(tc.obs, status.Set(tc.obs, statetest.Noon), statetest.Noon).Decide()
			g.Expect(v.Note != nil).To(Equal(tc.back), "%+v", v.condition)
			if !tc.back {
				g.Expect(v.condition.Reason).To(Equal(tc.reason), v.condition.Message)
				g.Expect(v.Left).To(Equal(tc.left))
			}
		})
	}
}

// Whatever is the case, it goes back only where somebody asked for it, within a minor version, once, and after the time that was asked for.
func TestComebackProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewWithT(t)
		version := func(name string) *release.Release {
			if !rapid.Bool().Draw(t, name+" is known") {
				return nil
			}
			r := statetest.ReleaseOf("reg.example.com/release:" + rapid.SampledFrom([]string{"1.35.3", "1.35.4", "1.36.3"}).Draw(t, name))
			r.Kubernetes = rapid.Bool().Draw(t, name+" is of Kubernetes")
			r.ComponentVersions = map[string]string{"etcd": rapid.SampledFrom([]string{"", "3.6.7", "3.6.8", "3.7.0"}).Draw(t, name+" etcd")}
			return r
		}
		c := Case{option: rapid.SampledFrom([]string{"", "false", "true", "5m", "x"}).Draw(t, "option"), held: rapid.Bool().Draw(t, "held"), separate: rapid.Bool().Draw(t, "separate"),
			asked: statetest.Image135, target: version("target"), before: version("before"), under: rapid.Bool().Draw(t, "under"), failing: rapid.SampledFrom([]string{"", "x"}).Draw(t, "failing"),
			since: statetest.Noon.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "minutes")) * time.Minute), now: statetest.Noon}
		if rapid.Bool().Draw(t, "last") {
			c.last = &configv1.UpdateHistory{Image: statetest.Image1353, Version: "1.35.3", State: configv1.CompletedUpdate}
		}
		if rapid.Bool().Draw(t, "noted") {
			c.note = &upgrades.Note{From: statetest.Image135, To: statetest.Image1353}
		}
		v := c.Decide()
		g.Expect(v.Note == nil || v.condition == nil).To(BeTrue())
		if v.Note == nil {
			return
		}
		patience, err := upgrades.Patience(c.option)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(patience).To(BeNumerically(">", 0))
		g.Expect(c.since.Add(patience)).NotTo(BeTemporally(">", c.now))
		g.Expect(c.note).To(BeNil())
		g.Expect(c.under && c.failing != "" && !c.held && !c.separate).To(BeTrue())
		g.Expect(release.SameMinor(c.before.Version, c.target.Version)).To(BeTrue())
		g.Expect(c.before.Kubernetes && c.target.Kubernetes).To(BeTrue())
		old, new := c.before.ComponentVersions["etcd"], c.target.ComponentVersions["etcd"]
		g.Expect(old == new || release.SameMinor(old, new)).To(BeTrue())
		again := c
		again.note = v.Note
		g.Expect(again.Decide().Note).To(BeNil())
	})
}

func TestStandIn(t *testing.T) {
	noted := func(edit func(*hyperv1.HostedCluster)) *hyperv1.HostedCluster {
		hc := statetest.Seen().HC
		text, _ := upgrades.Note{From: statetest.Image135, To: statetest.Image1353}.Text()
		hc.Annotations[upgrades.ReturnedAnnotation] = text
		hc.Status.Version = &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Image: statetest.Image135, State: configv1.PartialUpdate}, {Image: statetest.Image1353, State: configv1.CompletedUpdate}}}
		edit(hc)
		return hc
	}
	for name, tc := range map[string]struct {
		edit func(*hyperv1.HostedCluster)
		want string
	}{
		"When the release that failed is asked for the one of before should stand in": {func(*hyperv1.HostedCluster) {}, statetest.Image1353},
		"When another release is asked for since it should have that":                 {func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = statetest.Image136 }, statetest.Image136},
		"When the one of before is asked for since it should have that":               {func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = statetest.Image1353 }, statetest.Image1353},
		"When the note names a release that never ran it should not be heeded": {func(hc *hyperv1.HostedCluster) {
			hc.Annotations[upgrades.ReturnedAnnotation] = strings.ReplaceAll(hc.Annotations[upgrades.ReturnedAnnotation], "1.35.3", "1.34.0")
		}, statetest.Image135},
		"When the note is none it should not be heeded": {func(hc *hyperv1.HostedCluster) { hc.Annotations[upgrades.ReturnedAnnotation] = "true" }, statetest.Image135},
		"When the control plane gets a release of its own since it should have that": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.ControlPlaneRelease = &hyperv1.Release{Image: statetest.Image136}
		}, statetest.Image135},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hc := noted(tc.edit)
			asked := hc.Spec.Release.Image
			note := StandIn(hc)
			g.Expect(hc.Spec.Release.Image).To(Equal(tc.want))
			g.Expect(note != nil).To(Equal(asked != tc.want))
		})
	}
}
