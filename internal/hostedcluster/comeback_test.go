package hostedcluster

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/upgrades"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/testenv"
)

const image1353 = "reg.example.com/release:1.35.3"

// fails is an upgrade from 1.35.3 to 1.35.4 that fails for an hour.
func fails(edit ...func(*comeback)) comeback {
	c := comeback{option: "true", asked: image135, target: releaseOf(image135), before: releaseOf(image1353), last: &configv1.UpdateHistory{Image: image1353, Version: "1.35.3", State: configv1.CompletedUpdate},
		under: true, failing: "kube-apiserver does not start", since: noon.Add(-time.Hour), now: noon}
	for _, e := range edit {
		e(&c)
	}
	return c
}

func TestComebackDecision(t *testing.T) {
	etcd := func(before, target string) func(*comeback) {
		return func(c *comeback) {
			c.before.ComponentVersions, c.target.ComponentVersions = map[string]string{"etcd": before}, map[string]string{"etcd": target}
		}
	}
	for name, tc := range map[string]struct {
		in     comeback
		back   bool
		reason string // of the condition; empty: there is none
		says   string
		left   time.Duration
	}{
		"When an upgrade has failed for long enough it should go back":  {in: fails(), back: true},
		"When nobody asks for it it should stay":                        {in: fails(func(c *comeback) { c.option = "" })},
		"When it is switched off it should stay":                        {in: fails(func(c *comeback) { c.option = "false" })},
		"When the value means nothing it should say so":                 {in: fails(func(c *comeback) { c.option = "yes" }), reason: upgrades.InvalidReason, says: `is "yes": write true`},
		"When nothing fails it should stay":                             {in: fails(func(c *comeback) { c.failing = "" }), reason: upgrades.NotFailedReason},
		"When no upgrade is under way it should stay":                   {in: fails(func(c *comeback) { c.under = false }), reason: upgrades.NotFailedReason},
		"When the cluster is paused or a gate is closed it should stay": {in: fails(func(c *comeback) { c.held = true }), reason: upgrades.NotFailedReason},
		"When it fails for a minute it should say when it goes back":    {in: fails(func(c *comeback) { c.since = noon.Add(-time.Minute) }), reason: upgrades.FailingReason, says: "goes back to 1.35.3 if it still does at 2026-01-02T12:09:00Z", left: 9 * time.Minute},
		"When somebody gives it more time it should have that":          {in: fails(func(c *comeback) { c.option = "2h" }), reason: upgrades.FailingReason, left: time.Hour},
		"When the release of before can't be read it should say so":     {in: fails(func(c *comeback) { c.before = nil }), reason: upgrades.ImpossibleReason, says: "can't be read"},
		"When there was no release before it should say so":             {in: fails(func(c *comeback) { c.last, c.before = nil, nil }), reason: upgrades.ImpossibleReason, says: "no release has been rolled out completely before"},
		"When the minor version is another one it should not go back":   {in: fails(func(c *comeback) { c.target = releaseOf(image136) }), reason: upgrades.ImpossibleReason, says: "another minor version"},
		"When it is an OpenShift payload it should not go back":         {in: fails(func(c *comeback) { c.target.Kubernetes = false }), reason: upgrades.ImpossibleReason, says: "OpenShift payloads"},
		"When the control plane has a release of its own it should not": {in: fails(func(c *comeback) { c.separate = true }), reason: upgrades.ImpossibleReason, says: "spec.controlPlaneRelease"},
		"When etcd has another patch it should go back":                 {in: fails(etcd("3.6.7", "3.6.8")), back: true},
		"When etcd has another minor version it should not go back":     {in: fails(etcd("3.6.8", "3.7.0")), reason: upgrades.ImpossibleReason, says: `etcd has version "3.6.8"`},
		"When one release does not say which etcd it has it should not": {in: fails(etcd("", "3.7.0")), reason: upgrades.ImpossibleReason, says: "its files do not go back"},
		"When it went back already it should say so, and not go back again": {in: fails(func(c *comeback) {
			c.note = &upgrades.Note{From: image135, To: image1353, FromVersion: "1.35.4", ToVersion: "1.35.3", At: noon, Why: "x"}
		}), reason: upgrades.FailedReason, says: "went back to 1.35.3"},
		"When it went back and that is switched off since it should stay so": {in: fails(func(c *comeback) { c.option = ""; c.note = &upgrades.Note{FromVersion: "1.35.4", ToVersion: "1.35.3"} }), reason: upgrades.FailedReason},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := tc.in.decide()
			g.Expect(v.note != nil).To(Equal(tc.back))
			g.Expect(v.left).To(Equal(tc.left))
			if tc.reason == "" {
				g.Expect(v.condition).To(BeNil())
			} else {
				g.Expect(v.condition.Reason).To(Equal(tc.reason), v.condition.Message)
				g.Expect(v.condition.Message).To(ContainSubstring(tc.says))
			}
		})
	}
	t.Run("When it goes back the note should say from where, to where and why", func(t *testing.T) {
		NewWithT(t).Expect(*fails().decide().note).To(Equal(upgrades.Note{From: image135, To: image1353, FromVersion: "1.35.4", ToVersion: "1.35.3", At: noon.Truncate(time.Second), Why: "kube-apiserver does not start"}))
	})
}

// Whatever is the case, it goes back only where somebody asked for it, within a minor version, once, and after the time that was asked for.
func TestComebackProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewWithT(t)
		version := func(name string) *release.Release {
			if !rapid.Bool().Draw(t, name+" is known") {
				return nil
			}
			r := releaseOf("reg.example.com/release:" + rapid.SampledFrom([]string{"1.35.3", "1.35.4", "1.36.3"}).Draw(t, name))
			r.Kubernetes = rapid.Bool().Draw(t, name+" is of Kubernetes")
			r.ComponentVersions = map[string]string{"etcd": rapid.SampledFrom([]string{"", "3.6.7", "3.6.8", "3.7.0"}).Draw(t, name+" etcd")}
			return r
		}
		c := comeback{option: rapid.SampledFrom([]string{"", "false", "true", "5m", "x"}).Draw(t, "option"), held: rapid.Bool().Draw(t, "held"), separate: rapid.Bool().Draw(t, "separate"),
			asked: image135, target: version("target"), before: version("before"), under: rapid.Bool().Draw(t, "under"), failing: rapid.SampledFrom([]string{"", "x"}).Draw(t, "failing"),
			since: noon.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "minutes")) * time.Minute), now: noon}
		if rapid.Bool().Draw(t, "last") {
			c.last = &configv1.UpdateHistory{Image: image1353, Version: "1.35.3", State: configv1.CompletedUpdate}
		}
		if rapid.Bool().Draw(t, "noted") {
			c.note = &upgrades.Note{From: image135, To: image1353}
		}
		v := c.decide()
		g.Expect(v.note == nil || v.condition == nil).To(BeTrue())
		if v.note == nil {
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
		again.note = v.note
		g.Expect(again.decide().note).To(BeNil())
	})
}

func TestStandIn(t *testing.T) {
	noted := func(edit func(*hyperv1.HostedCluster)) *hyperv1.HostedCluster {
		hc := seen().HC
		text, _ := upgrades.Note{From: image135, To: image1353}.Text()
		hc.Annotations[upgrades.ReturnedAnnotation] = text
		hc.Status.Version = &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Image: image135, State: configv1.PartialUpdate}, {Image: image1353, State: configv1.CompletedUpdate}}}
		edit(hc)
		return hc
	}
	for name, tc := range map[string]struct {
		edit func(*hyperv1.HostedCluster)
		want string
	}{
		"When the release that failed is asked for the one of before should stand in": {func(*hyperv1.HostedCluster) {}, image1353},
		"When another release is asked for since it should have that":                 {func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = image136 }, image136},
		"When the one of before is asked for since it should have that":               {func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = image1353 }, image1353},
		"When the note names a release that never ran it should not be heeded": {func(hc *hyperv1.HostedCluster) {
			hc.Annotations[upgrades.ReturnedAnnotation] = strings.ReplaceAll(hc.Annotations[upgrades.ReturnedAnnotation], "1.35.3", "1.34.0")
		}, image135},
		"When the note is none it should not be heeded":                              {func(hc *hyperv1.HostedCluster) { hc.Annotations[upgrades.ReturnedAnnotation] = "true" }, image135},
		"When the control plane gets a release of its own since it should have that": {func(hc *hyperv1.HostedCluster) { hc.Spec.ControlPlaneRelease = &hyperv1.Release{Image: image136} }, image135},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hc := noted(tc.edit)
			asked := hc.Spec.Release.Image
			note := standIn(hc)
			g.Expect(hc.Spec.Release.Image).To(Equal(tc.want))
			g.Expect(note != nil).To(Equal(asked != tc.want))
		})
	}
}

// TestComeback plays an upgrade that fails on a real API server: the control plane is played, as its operator would report it.
func TestComeback(t *testing.T) {
	w := newWorld(t)
	g, ctx := NewWithT(t), t.Context()
	bad := w.registry.PushRelease(t, "1.35.5", w.registry.KubernetesTags())
	other := w.registry.PushRelease(t, "1.35.6", w.registry.KubernetesTags())
	clock := clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second))
	settle := func() {
		for range 30 {
			counting := testenv.NewFaultClient(w.client, testenv.FailWrite, 0)
			r := w.reconciler(counting)
			r.Clock = clock
			_, err := r.Reconcile(ctx, w.request("demo"))
			g.Expect(err).NotTo(HaveOccurred())
			if counting.Writes() == 0 {
				return
			}
		}
		t.Fatal("still writing after 30 passes")
	}
	ask := func(image string) {
		hc, err := w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		before := hc.DeepCopy()
		hc.Spec.Release.Image = image
		g.Expect(w.client.Patch(ctx, hc, client.MergeFrom(before))).To(Succeed())
		settle()
	}
	wanted := func() string {
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.ns + "-demo", Name: "demo"}, hcp)).To(Succeed())
		return hcp.Spec.ReleaseImage
	}
	report := func(failing bool, history ...configv1.UpdateHistory) {
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.ns + "-demo", Name: "demo"}, hcp)).To(Succeed())
		newest := history[0]
		hcp.Status.VersionStatus = &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Image: newest.Image, Version: newest.Version}, History: history, AvailableUpdates: []configv1.Release{}, ObservedGeneration: 1}
		succeeding := conditions.True(hyperv1.ClusterVersionSucceeding, hyperv1.FromClusterVersionReason, "")
		if failing {
			succeeding = conditions.False(hyperv1.ClusterVersionSucceeding, hyperv1.FromClusterVersionReason, "kube-apiserver does not start")
		}
		conditions.Set(&hcp.Status.Conditions, clock.Now(), succeeding, conditions.True(hyperv1.HostedControlPlaneAvailable, "AsExpected", ""))
		g.Expect(w.client.Status().Update(ctx, hcp)).To(Succeed()) // not by a merge patch: completionTime has to be there as null
		settle()
	}
	entry := func(image, version string, complete bool) configv1.UpdateHistory {
		h := configv1.UpdateHistory{Image: image, Version: version, State: configv1.PartialUpdate, StartedTime: metav1.NewTime(clock.Now())}
		if complete {
			h.State, h.CompletionTime = configv1.CompletedUpdate, &h.StartedTime
		}
		return h
	}
	g.Expect(w.client.Create(ctx, w.hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Annotations[upgrades.ReturnAnnotation] = "true" }))).To(Succeed())
	settle()
	good := entry(w.image, "1.35.4", true)
	report(false, good)
	g.Expect(w.condition(ctx, "demo", upgrades.Returned)()).To(Equal("False/" + upgrades.NotFailedReason))

	ask(bad)
	g.Expect(wanted()).To(Equal(bad))
	failed := entry(bad, "1.35.5", false)
	report(true, failed, good)
	t.Run("When an upgrade begins to fail it should say when it goes back, and stay", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.condition(ctx, "demo", upgrades.Returned)()).To(Equal("False/" + upgrades.FailingReason))
		g.Expect(wanted()).To(Equal(bad))
	})
	clock.SetTime(clock.Now().Add(11 * time.Minute))
	settle()
	t.Run("When it has failed for ten minutes it should go back, say so, and leave the spec alone", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(wanted()).To(Equal(w.image))
		g.Expect(w.condition(ctx, "demo", upgrades.Returned)()).To(Equal("True/" + upgrades.FailedReason))
		g.Expect(w.message(ctx, "demo", upgrades.Returned)).To(ContainSubstring("the upgrade from 1.35.4 to 1.35.5 failed"))
		hc, err := w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(hc.Spec.Release.Image).To(Equal(bad))
	})
	back := entry(w.image, "1.35.4", true)
	report(false, back, failed, good)
	t.Run("When the control plane is back it should stay there however long it takes, and not call itself at the expected version", func(t *testing.T) {
		g := NewWithT(t)
		clock.SetTime(clock.Now().Add(24 * time.Hour))
		settle()
		g.Expect(wanted()).To(Equal(w.image))
		g.Expect(w.condition(ctx, "demo", hyperv1.HostedClusterProgressing)()).To(Equal("False/" + hyperv1.BlockedReason))
	})
	t.Run("When another release is asked for it should be rolled out, and the note be gone", func(t *testing.T) {
		g := NewWithT(t)
		ask(other)
		g.Expect(wanted()).To(Equal(other))
		hc, err := w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(hc.Annotations).NotTo(HaveKey(upgrades.ReturnedAnnotation))
	})
	t.Run("When the note is taken off by hand the release that failed should be tried again, once more", func(t *testing.T) {
		g := NewWithT(t)
		report(true, entry(other, "1.35.6", false), back, failed, good)
		clock.SetTime(clock.Now().Add(11 * time.Minute))
		settle()
		g.Expect(wanted()).To(Equal(w.image))
		hc, err := w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		report(false, entry(w.image, "1.35.4", true), back, failed, good)
		g.Expect(w.client.Patch(ctx, hc, patch.Annotation(upgrades.ReturnedAnnotation, nil))).To(Succeed())
		settle()
		g.Expect(wanted()).To(Equal(other))
	})
}
