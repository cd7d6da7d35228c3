package comeback

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/upgrades"
	"hcp.internal/platform/internal/hostedcluster/statetest"
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
