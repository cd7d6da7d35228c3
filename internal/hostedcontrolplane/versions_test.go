package hostedcontrolplane

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/release"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(minute int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))
}

func done(version string, started, completed int) entry {
	return entry{configv1.CompletedUpdate, at(started), ptr.To(at(completed)), version, "image:" + version}
}

func partial(version string, started int) entry {
	return entry{configv1.PartialUpdate, at(started), nil, version, "image:" + version}
}

func to(version string) configv1.Release {
	return configv1.Release{Version: version, Image: "image:" + version}
}

func TestAdvance(t *testing.T) {
	for name, tc := range map[string]struct {
		history  []entry
		desired  configv1.Release
		complete bool
		want     []entry
	}{
		"When nothing was rolled out yet it should begin": {
			desired: to("1.35.1"), want: []entry{partial("1.35.1", 60)},
		},
		"When the rollout is under way it should change nothing": {
			history: []entry{partial("1.35.1", 0)}, desired: to("1.35.1"), want: []entry{partial("1.35.1", 0)},
		},
		"When every component is there it should complete": {
			history: []entry{partial("1.35.1", 0)}, desired: to("1.35.1"), complete: true, want: []entry{done("1.35.1", 0, 60)},
		},
		"When a component restarts later it should stay completed": {
			history: []entry{done("1.35.1", 0, 5)}, desired: to("1.35.1"), want: []entry{done("1.35.1", 0, 5)},
		},
		"When another release is wanted it should begin that and keep the completed one": {
			history: []entry{done("1.35.1", 0, 5)}, desired: to("1.36.3"), want: []entry{partial("1.36.3", 60), done("1.35.1", 0, 5)},
		},
		"When another release is wanted before the last is complete it should close that as partial": {
			history: []entry{partial("1.36.3", 10), done("1.35.1", 0, 5)}, desired: to("1.36.4"),
			want: []entry{partial("1.36.4", 60), {configv1.PartialUpdate, at(10), ptr.To(at(60)), "1.36.3", "image:1.36.3"}, done("1.35.1", 0, 5)},
		},
		"When it goes back to the old release it should be a new entry": {
			history: []entry{partial("1.36.3", 10), done("1.35.1", 0, 5)}, desired: to("1.35.1"),
			want: []entry{partial("1.35.1", 60), {configv1.PartialUpdate, at(10), ptr.To(at(60)), "1.36.3", "image:1.36.3"}, done("1.35.1", 0, 5)},
		},
		"When the same version is named by another reference it should be the same rollout": {
			history: []entry{done("1.35.1", 0, 5)}, desired: configv1.Release{Version: "1.35.1", Image: "mirror:1.35.1"},
			want: []entry{{configv1.CompletedUpdate, at(0), ptr.To(at(5)), "1.35.1", "mirror:1.35.1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := advance(slices.Clone(tc.history), rollout{desired: tc.desired, complete: tc.complete, now: noon.Add(time.Hour + 300*time.Millisecond)})
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestPrune(t *testing.T) {
	g := NewWithT(t)
	var history []entry
	minute := 0
	add := func(version string, complete bool) {
		minute++
		history = advance(history, rollout{desired: to(version), complete: complete, now: at(minute).Time})
	}
	add("1.34.0", true) // the first of all
	add("1.35.0", true) // the first of its minor
	for i := range 300 {
		add(fmt.Sprintf("1.35.%d", i+1), i%2 == 0)
	}
	add("1.36.0", false)
	g.Expect(history).To(HaveLen(maxHistory))
	g.Expect(history[0].version).To(Equal("1.36.0"))
	g.Expect(history[maxHistory-1].version).To(Equal("1.34.0"))
	g.Expect(history[maxHistory-2].version).To(Equal("1.35.0"), "the first completed of a minor version stays")
	newest := slices.IndexFunc(history, func(e entry) bool { return e.state == configv1.CompletedUpdate })
	g.Expect(history[newest].version).To(Equal("1.35.299"), "the newest completed stays")
}

// TestHistoryProperties walks through random upgrades.
func TestHistoryProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var status hyperv1.ControlPlaneVersionStatus
		now := noon
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "seconds")) * time.Second)
			r := rollout{
				desired:  to(fmt.Sprintf("1.%d.%d", rapid.IntRange(34, 36).Draw(t, "minor"), rapid.IntRange(0, 9).Draw(t, "patch"))),
				complete: rapid.Bool().Draw(t, "complete"), generation: 1, now: now,
			}
			before := status
			status = controlPlaneVersion(before, r)
			if again := controlPlaneVersion(status, r); fmt.Sprint(again) != fmt.Sprint(status) {
				t.Fatalf("a second pass changes %v to %v", status, again)
			}
			if len(status.History) == 0 || len(status.History) > maxHistory {
				t.Fatalf("%d entries", len(status.History))
			}
			if h := status.History[0]; h.Version != r.desired.Version || r.complete && h.State != configv1.CompletedUpdate {
				t.Fatalf("newest entry %v does not describe %v", h, r)
			}
			for i, h := range status.History {
				if (h.CompletionTime == nil) && (i > 0 || h.State == configv1.CompletedUpdate) {
					t.Fatalf("entry %d has no end: %v", i, h)
				}
				if i > 0 && status.History[i-1].StartedTime.Before(&h.StartedTime) {
					t.Fatalf("entry %d is newer than the one before it", i)
				}
			}
		}
	})
}

func TestClusterVersionConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		history                []entry
		waiting, failures      []string
		behind                 string
		running, after         time.Duration // since the rollout began: when etcd came last, and now
		progressing, available string
		failing, upgradeable   string // as they are when all is well, if empty
	}{
		"When the first rollout is under way it should say what is waited for": {
			history: []entry{partial("1.36.3", 0)}, waiting: []string{"etcd", "kube-apiserver"},
			progressing: "True Working towards 1.36.3: waiting for etcd, kube-apiserver", available: "False No version has been rolled out completely yet",
		},
		"When it is complete it should be settled": {
			history:     []entry{done("1.36.3", 0, 5)},
			progressing: "False The cluster runs version 1.36.3", available: "True The cluster has been rolled out to version 1.36.3",
		},
		"When it upgrades it should stay available": {
			history: []entry{partial("1.36.3", 10), done("1.35.1", 0, 5)}, waiting: []string{"kube-scheduler"},
			progressing: "True Working towards 1.36.3: waiting for kube-scheduler", available: "True The cluster has been rolled out to version 1.35.1",
			upgradeable: "False the upgrade from 1.35.1 to 1.36.3 has not ended: waiting for kube-scheduler",
		},
		"When it moves within a minor version another minor should not have to wait": {
			history:     []entry{partial("1.36.3", 10), done("1.36.1", 0, 5)},
			progressing: "True Working towards 1.36.3", available: "True The cluster has been rolled out to version 1.36.1",
		},
		"When a component can't be reconciled it should fail and say why": {
			history: []entry{done("1.36.3", 0, 5)}, failures: []string{"kube-scheduler: no"},
			progressing: "False The cluster runs version 1.36.3", available: "True The cluster has been rolled out to version 1.36.3", failing: "True kube-scheduler: no",
		},
		"When the control plane is to stay behind it should say so and what to do": {
			history: []entry{partial("1.36.3", 10), done("1.35.1", 0, 5)}, behind: "the control plane stays at 1.35.2", after: rolloutPatience,
			progressing: "True Working towards 1.36.3: the control plane stays at 1.35.2", available: "True The cluster has been rolled out to version 1.35.1",
			failing:     "True version 1.36.3 is not rolled out since 2026-01-02T12:00:00Z: the control plane stays at 1.35.2",
			upgradeable: "False the upgrade from 1.35.1 to 1.36.3 has not ended: the control plane stays at 1.35.2",
		},
		"When a rollout takes far too long it should fail and say what it waits for": {
			history: []entry{partial("1.36.3", 0)}, waiting: []string{"etcd"}, after: rolloutPatience,
			progressing: "True Working towards 1.36.3: waiting for etcd", available: "False No version has been rolled out completely yet",
			failing: "True version 1.36.3 is not rolled out since 2026-01-02T12:00:00Z: waiting for etcd",
		},
		"When the cluster slept meanwhile that time should not count": {
			history: []entry{partial("1.36.3", 0)}, waiting: []string{"etcd"}, running: rolloutPatience - time.Minute, after: 2*rolloutPatience - 2*time.Minute,
			progressing: "True Working towards 1.36.3: waiting for etcd", available: "False No version has been rolled out completely yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status := &hyperv1.ClusterVersionStatus{Desired: to("1.36.3")}
			for _, e := range tc.history {
				status.History = append(status.History, configv1.UpdateHistory{State: e.state, Version: e.version, StartedTime: metav1.NewTime(noon)})
			}
			conds := clusterVersionConditions(versionReport{status: status, waiting: tc.waiting, failures: tc.failures, behind: tc.behind, running: noon.Add(tc.running), now: noon.Add(tc.after)})
			text := func(kind string) string {
				c := conditions.Get(conds, kind)
				g.Expect(c.Reason).To(Equal("FromClusterVersion"))
				return string(c.Status) + " " + c.Message
			}
			g.Expect(text(hyperv1.ClusterVersionProgressing)).To(Equal(tc.progressing))
			g.Expect(text(hyperv1.ClusterVersionAvailable)).To(Equal(tc.available))
			g.Expect(text(hyperv1.ClusterVersionFailing)).To(Equal(cmp.Or(tc.failing, "False ")))
			g.Expect(text(hyperv1.ClusterVersionSucceeding)).To(HavePrefix(map[bool]string{true: "True", false: "False"}[tc.failing == ""]))
			g.Expect(text(hyperv1.ClusterVersionUpgradeable)).To(Equal(cmp.Or(tc.upgradeable, "True ")))
			g.Expect(text(hyperv1.ClusterVersionReleaseAccepted)).To(HavePrefix("True The release 1.36.3 was loaded from"))
			g.Expect(conditions.Get(conds, hyperv1.ClusterVersionRetrievedUpdates).Status).To(Equal(metav1.ConditionUnknown))
		})
	}
}

// TestSeparateReleases has the control plane at a release of its own.
func TestSeparateReleases(t *testing.T) {
	for name, tc := range map[string]struct {
		controlPlane, user string
		openShift          bool
		completed          bool
	}{
		"When the control plane stays at a minor version before it the release should not be complete": {controlPlane: "1.35.2", user: "1.36.0"},
		"When the control plane is at an older patch of it the release should be complete":             {controlPlane: "1.36.0", user: "1.36.3", completed: true},
		"When the control plane is a minor version ahead of it the release should be complete":         {controlPlane: "1.36.3", user: "1.35.2", completed: true},
		"When both are the same it should be complete":                                                 {controlPlane: "1.36.3", user: "1.36.3", completed: true},
		"When the hosted cluster reports its release itself it should be left to it":                   {controlPlane: "4.20.1", user: "4.21.0", openShift: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obs := wellObserved(func(o *Observed) {
				o.Release = &release.Release{Version: tc.controlPlane, Image: "image:" + tc.controlPlane, Kubernetes: !tc.openShift}
				o.UserRelease = &release.Release{Version: tc.user, Image: "image:" + tc.user, Kubernetes: !tc.openShift}
				for i := range o.Components {
					o.Components[i].Status.Version = tc.controlPlane
				}
			})
			status := hyperv1.HostedControlPlaneStatus{}
			report(&status, obs, noon)
			g.Expect(status.ControlPlaneVersion.History[0].State).To(Equal(configv1.CompletedUpdate))
			if tc.openShift {
				g.Expect(status.VersionStatus).To(BeNil())
				return
			}
			g.Expect(status.VersionStatus.Desired.Version).To(Equal(tc.user))
			progressing := conditions.Get(status.Conditions, hyperv1.ClusterVersionProgressing)
			if tc.completed {
				g.Expect(status.VersionStatus.History[0].State).To(Equal(configv1.CompletedUpdate))
				g.Expect(progressing.Status).To(Equal(metav1.ConditionFalse))
				return
			}
			g.Expect(status.VersionStatus.History[0].State).To(Equal(configv1.PartialUpdate))
			g.Expect(status.VersionStatus.History[0].CompletionTime).To(BeNil(), "NodePools go by it")
			g.Expect(status.Version).To(BeEmpty()) //nolint:staticcheck // because old readers read it
			g.Expect(progressing.Status).To(Equal(metav1.ConditionTrue))
			g.Expect(progressing.Message).To(Equal("Working towards 1.36.0: the control plane stays at 1.35.2, which spec.controlPlaneRelease names: name a release of 1.36 there, or remove the field"))
		})
	}
}

func to136() configv1.Release {
	return configv1.Release{Version: "1.36.3", Image: "10.244.0.1:5000/hypershift/release@sha256:abc"}
}
