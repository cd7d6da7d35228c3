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
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/statetest"
	"hcp.internal/platform/internal/hostedcluster/status"
	"hcp.internal/platform/internal/hostedcluster/step"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pause"
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

// closedGates are what closes each of the gates.
var closedGates = map[string]func(*state.Observed){
	"the configuration": func(obs *state.Observed) {
		obs.HC.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "10.132.0.0/16"}}
	},
	"the platform": func(obs *state.Observed) { _, obs.PlatformErr = platform.For("Moon"); obs.Platform = nil },
	"the release": func(obs *state.Observed) {
		obs.ReleaseErr = fmt.Errorf("x: %w", release.ErrNotFound)
		obs.Target, obs.UserRelease = nil, nil
	},
	"the upgrade": func(obs *state.Observed) {
		obs.HC.Spec.Release.Image = statetest.Image136
		obs.Target, obs.UserRelease = statetest.ReleaseOf(statetest.Image136), statetest.ReleaseOf(statetest.Image136)
		obs.HCP.Status.VersionStatus = &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Image: statetest.Image135, Version: "1.35.4"}}
		obs.HCP.Status.Conditions = append(obs.HCP.Status.Conditions, conditions.False(hyperv1.ClusterVersionUpgradeable, "X", "etcd is sick"))
	},
	"room": func(obs *state.Observed) {
		obs.Admission = &admission.Decision{Waits: true, Reason: hyperv1.WaitingForCapacityReason}
	},
}

// passedOn are the HostedControlPlane and the Cluster that a plan writes, nil when it does not, and whether it writes anything else.
func passedOn(p plan) (hcp *hyperv1.HostedControlPlane, cluster *clusterv1.Cluster, more bool) {
	for _, s := range p.steps {
		more = more || s.Create != nil || len(s.Delete) > 0
		for _, obj := range s.Apply {
			switch o := obj.(type) {
			case *hyperv1.HostedControlPlane:
				hcp = o
			case *clusterv1.Cluster:
				cluster = o
			default:
				more = true
			}
		}
	}
	return hcp, cluster, more
}

func TestPauseBehindClosedGates(t *testing.T) {
	// runs is a cluster with a control plane and machines, as spec.pausedUntil and the spec before left it.
	runs := func(paused *string, clusterPaused bool, closed func(*state.Observed)) *state.Observed {
		return statetest.Seen(func(obs *state.Observed) {
			obs.HC.Spec.Platform.Type, obs.HC.Spec.Channel = hyperv1.LocalPlatform, "changed"
			obs.Platform, _ = platform.For(hyperv1.LocalPlatform)
			obs.HCP = &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo", Annotations: map[string]string{"kept": "yes"}},
				Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: statetest.Image135, Channel: "as-it-was", PausedUntil: paused}}
			obs.CAPICluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo-abcde"},
				Spec: clusterv1.ClusterSpec{Paused: &clusterPaused, InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: "LocalCluster", Name: "demo"}}}
			closed(obs)
		})
	}
	for gate, closed := range closedGates {
		plan := func(paused *string, clusterPaused bool) plan {
			obs := runs(paused, clusterPaused, closed)
			return planFor(obs, status.Set(obs, statetest.Noon), statetest.Noon, options{})
		}
		t.Run("When a pause ends while "+gate+" holds the cluster it should pass on that and nothing else", func(t *testing.T) {
			g := NewWithT(t)
			hcp, cluster, more := passedOn(plan(ptr.To("true"), true))
			g.Expect(hcp).NotTo(BeNil())
			g.Expect(hcp.Spec).To(Equal(hyperv1.HostedControlPlaneSpec{ReleaseImage: statetest.Image135, Channel: "as-it-was"}))
			g.Expect(hcp.Annotations).To(HaveKeyWithValue("kept", "yes"))
			g.Expect(cluster).NotTo(BeNil())
			g.Expect(cluster.Spec.Paused).To(HaveValue(BeFalse()))
			g.Expect(cluster.Spec.InfrastructureRef.Name).To(Equal("demo"))
			g.Expect(more).To(BeFalse())
		})
		t.Run("When only Cluster API is still paused while "+gate+" holds the cluster it should go on", func(t *testing.T) {
			g := NewWithT(t)
			hcp, cluster, more := passedOn(plan(nil, true))
			g.Expect(hcp).To(BeNil())
			g.Expect(cluster).NotTo(BeNil())
			g.Expect(more).To(BeFalse())
		})
		t.Run("When nothing is paused while "+gate+" holds the cluster it should write nothing", func(t *testing.T) {
			g := NewWithT(t)
			hcp, cluster, more := passedOn(plan(nil, false))
			g.Expect(hcp).To(BeNil())
			g.Expect(cluster).To(BeNil())
			g.Expect(more).To(BeFalse())
		})
	}
	t.Run("When the control plane is being deleted it should be left alone", func(t *testing.T) {
		g := NewWithT(t)
		obs := runs(ptr.To("true"), true, closedGates["the configuration"])
		obs.HCP.DeletionTimestamp, obs.CAPICluster.DeletionTimestamp = &metav1.Time{Time: statetest.Noon}, &metav1.Time{Time: statetest.Noon}
		hcp, cluster, _ := passedOn(planFor(obs, status.Set(obs, statetest.Noon), statetest.Noon, options{}))
		g.Expect(hcp).To(BeNil())
		g.Expect(cluster).To(BeNil())
	})
}

func TestSleepBehindClosedGates(t *testing.T) {
	// sleeps is a cluster by the schedule "sleep 20:00, wake 07:00", whose control plane was told to sleep, or not to.
	sleeps := func(now time.Time, told bool, closed func(*state.Observed)) *state.Observed {
		return statetest.Seen(func(obs *state.Observed) {
			obs.HC.Annotations[pause.ScheduleAnnotation] = "sleep 0 20 * * *; wake 0 7 * * *"
			obs.Hibernation = pause.Hibernation(obs.HC.Annotations, now)
			obs.HCP = &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}, Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: statetest.Image135, Channel: "as-it-was"}}
			if told {
				obs.HCP.Annotations = map[string]string{hyperv1.HibernateAnnotation: "true"}
			}
			closed(obs)
		})
	}
	night, morning := time.Date(2026, 1, 2, 22, 0, 0, 0, time.UTC), time.Date(2026, 1, 3, 7, 0, 1, 0, time.UTC)
	for gate, closed := range closedGates {
		at := func(now time.Time, told bool) plan {
			obs := sleeps(now, told, closed)
			return planFor(obs, status.Set(obs, now), now, options{})
		}
		t.Run("When it is time to wake while "+gate+" holds the cluster the control plane should be told, and nothing else", func(t *testing.T) {
			g := NewWithT(t)
			hcp, _, more := passedOn(at(morning, true))
			g.Expect(hcp).NotTo(BeNil())
			g.Expect(hcp.Annotations).NotTo(HaveKey(hyperv1.HibernateAnnotation))
			g.Expect(hcp.Spec).To(Equal(hyperv1.HostedControlPlaneSpec{ReleaseImage: statetest.Image135, Channel: "as-it-was"}))
			g.Expect(more).To(BeFalse())
		})
		t.Run("When it is time to sleep while "+gate+" holds the cluster the control plane should be told", func(t *testing.T) {
			g := NewWithT(t)
			hcp, _, more := passedOn(at(night, false))
			g.Expect(hcp).NotTo(BeNil())
			g.Expect(hcp.Annotations).To(HaveKeyWithValue(hyperv1.HibernateAnnotation, "true"))
			g.Expect(more).To(BeFalse())
		})
		t.Run("When the control plane is as the schedule wants it while "+gate+" holds the cluster it should write nothing", func(t *testing.T) {
			g := NewWithT(t)
			for now, told := range map[time.Time]bool{night: true, morning: false} {
				hcp, _, _ := passedOn(at(now, told))
				g.Expect(hcp).To(BeNil())
			}
		})
		t.Run("When the schedule changes something in five minutes while "+gate+" holds the cluster it should come back for that", func(t *testing.T) {
			g := NewWithT(t)
			p := at(time.Date(2026, 1, 3, 6, 55, 0, 0, time.UTC), true)
			g.Expect(p.recheckAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", 5*time.Minute+time.Second)))
		})
	}
	t.Run("When the cluster is paused it should come back for the schedule, and leave the control plane as it is", func(t *testing.T) {
		g := NewWithT(t)
		obs := sleeps(morning, true, func(obs *state.Observed) { obs.HC.Spec.PausedUntil = ptr.To("true") })
		p := planFor(obs, status.Set(obs, morning), morning, options{})
		g.Expect(p.recheckAfter).To(BeNumerically(">", 0))
		hcp, _, _ := passedOn(p)
		g.Expect(hcp.Annotations).To(HaveKeyWithValue(hyperv1.HibernateAnnotation, "true"))
	})
}

// No gate that is closed lets anything be written but the mark on the user's own objects, while the control plane is as a pause and a sleep want it.
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
