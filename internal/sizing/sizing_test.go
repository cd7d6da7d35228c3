package sizing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func size(name string, from int32, to ...int32) schedulingv1alpha1.SizeConfiguration {
	s := schedulingv1alpha1.SizeConfiguration{Name: name, Criteria: schedulingv1alpha1.NodeCountCriteria{From: from}}
	if len(to) > 0 {
		s.Criteria.To = &to[0]
	}
	return s
}

// published are the sizes that the published operator begins with.
func published() schedulingv1alpha1.ClusterSizingConfigurationSpec {
	return schedulingv1alpha1.ClusterSizingConfigurationSpec{
		Sizes:           []schedulingv1alpha1.SizeConfiguration{size("small", 0, 10), size("medium", 11, 100), size("large", 101)},
		Concurrency:     schedulingv1alpha1.ConcurrencyConfiguration{SlidingWindow: metav1.Duration{Duration: 10 * time.Minute}, Limit: 5},
		TransitionDelay: schedulingv1alpha1.TransitionDelayConfiguration{Increase: metav1.Duration{Duration: 30 * time.Second}, Decrease: metav1.Duration{Duration: 10 * time.Minute}},
	}
}

func TestCheck(t *testing.T) {
	one := func(edit func(*schedulingv1alpha1.ClusterSizingConfigurationSpec)) schedulingv1alpha1.ClusterSizingConfigurationSpec {
		spec := published()
		edit(&spec)
		return spec
	}
	for name, tc := range map[string]struct {
		spec schedulingv1alpha1.ClusterSizingConfigurationSpec
		want string
	}{
		"When it is the published one it should have nothing against it": {spec: published()},
		"When the sizes are in another order it should have nothing against it": {spec: one(func(s *schedulingv1alpha1.ClusterSizingConfigurationSpec) {
			slices.Reverse(s.Sizes)
		})},
		"When there is none it should say so":                {spec: schedulingv1alpha1.ClusterSizingConfigurationSpec{}, want: "spec.sizes is empty"},
		"When there is a gap it should name both sides":      {spec: one(func(s *schedulingv1alpha1.ClusterSizingConfigurationSpec) { s.Sizes[1].Criteria.From = 13 }), want: "between size small, which ends at 10, and size medium, which begins at 13, is a gap: let medium begin at 11"},
		"When there is an overlap it should name both sides": {spec: one(func(s *schedulingv1alpha1.ClusterSizingConfigurationSpec) { s.Sizes[1].Criteria.From = 9 }), want: "is an overlap: let medium begin at 11"},
		"When two sizes have no end it should say so": {spec: one(func(s *schedulingv1alpha1.ClusterSizingConfigurationSpec) { s.Sizes[1].Criteria.To = nil }),
			want: "size medium has no criteria.to, so it overlaps with large: set it to 100"},
		"When crossing ranges balance it should find them all the same": {spec: schedulingv1alpha1.ClusterSizingConfigurationSpec{
			Sizes: []schedulingv1alpha1.SizeConfiguration{size("a", 0, 20), size("b", 11, 10+20), size("c", 21, 10), size("d", 31)}}, want: "overlap"},
		"When none is for 0 it should say so": {spec: one(func(s *schedulingv1alpha1.ClusterSizingConfigurationSpec) { s.Sizes[0].Criteria.From = 1 }), want: "no size is for 0 nodes: set criteria.from of small"},
		"When the largest has an end it should say so": {spec: one(func(s *schedulingv1alpha1.ClusterSizingConfigurationSpec) {
			s.Sizes[2].Criteria.To = ptr.To[int32](200)
		}), want: "no size is for more than 200 nodes"},
		"When a name can't be a reason it should say so": {spec: one(func(s *schedulingv1alpha1.ClusterSizingConfigurationSpec) { s.Sizes[2].Name = "x-large" }),
			want: `spec.sizes[2].name "x-large" can't be the reason of a condition`},
		"When only some count nodes per zone it should say so": {spec: one(func(s *schedulingv1alpha1.ClusterSizingConfigurationSpec) {
			s.Sizes[0].Management = &schedulingv1alpha1.Management{NonRequestServingNodesPerZone: resource.NewQuantity(1, resource.DecimalSI)}
		}), want: "set for 1 of 3 sizes"},
		"When a fraction is more than all it should say so": {spec: one(func(s *schedulingv1alpha1.ClusterSizingConfigurationSpec) {
			s.ResourceBasedAutoscaling.KubeAPIServerMemoryFraction = ptr.To(resource.MustParse("1.1"))
		}), want: "write more than 0 and at most 1"},
		"When a request makes no annotation it should say so": {spec: one(func(s *schedulingv1alpha1.ClusterSizingConfigurationSpec) {
			s.Sizes[0].Effects = &schedulingv1alpha1.Effects{ResourceRequests: []schedulingv1alpha1.ResourceRequest{{DeploymentName: "a/b", ContainerName: "c", CPU: resource.NewQuantity(1, resource.DecimalSI)}}}
		}), want: "spec.sizes[small].effects.resourceRequests[0]: a/b and c make no name of an annotation"},
		"When nodes of a larger size are smaller it should say so": {spec: one(func(s *schedulingv1alpha1.ClusterSizingConfigurationSpec) {
			s.Sizes[0].Capacity = &schedulingv1alpha1.SizeCapacity{Memory: ptr.To(resource.MustParse("8Gi"))}
			s.Sizes[1].Capacity = &schedulingv1alpha1.SizeCapacity{Memory: ptr.To(resource.MustParse("4Gi"))}
		}), want: "spec.sizes[medium].capacity.memory 4Gi is less than that of the smaller size small"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(&tc.spec)
			if tc.want == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
	t.Run("When it accepts any ranges each number of nodes should have exactly one size", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			var spec schedulingv1alpha1.ClusterSizingConfigurationSpec
			for i := range rapid.IntRange(1, 4).Draw(t, "sizes") {
				s := size(fmt.Sprintf("s%d", i), rapid.Int32Range(0, 6).Draw(t, "from"))
				if rapid.Bool().Draw(t, "ends") {
					s.Criteria.To = ptr.To(rapid.Int32Range(0, 6).Draw(t, "to"))
				}
				spec.Sizes = append(spec.Sizes, s)
			}
			every := true
			for n := range 10 {
				count := 0
				for _, s := range spec.Sizes {
					if n >= int(s.Criteria.From) && (s.Criteria.To == nil || n <= int(*s.Criteria.To)) {
						count++
					}
				}
				every = every && count == 1
			}
			if ok := Check(&spec) == nil; ok && !every {
				t.Fatalf("accepted %v", spec.Sizes)
			}
		})
	})
}

func hosted(name string, edit ...func(*hyperv1.HostedCluster)) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name, Labels: map[string]string{}, Annotations: map[string]string{}}}
	for _, e := range edit {
		e(hc)
	}
	return hc
}

// take does to a cluster what the controllers do after a decision.
func take(hc *hyperv1.HostedCluster, d Decision) {
	for _, c := range d.Conditions {
		conditions.Remove(&hc.Status.Conditions, c.Type)
		hc.Status.Conditions = append(hc.Status.Conditions, c)
	}
	if d.Label != "" {
		hc.Labels[hyperv1.HostedClusterSizeLabel] = d.Label
		hc.Annotations[hyperv1.HostedClusterScheduledAnnotation] = "true"
	}
}

func TestWanted(t *testing.T) {
	sizes := Sizes(published().Sizes)
	pool := func(edit func(*hyperv1.NodePool)) hyperv1.NodePool { np := hyperv1.NodePool{}; edit(&np); return np }
	fixed := func(n int32) hyperv1.NodePool { return pool(func(np *hyperv1.NodePool) { np.Spec.Replicas = &n }) }
	scaled := func(least, now int32) hyperv1.NodePool {
		return pool(func(np *hyperv1.NodePool) {
			np.Spec.AutoScaling, np.Status.Replicas = &hyperv1.NodePoolAutoScaling{Min: &least, Max: 500}, now
		})
	}
	nodes := func(n int) *hyperv1.HostedControlPlane {
		return &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{NodeCount: &n}}
	}
	annotated := func(key, value string) func(*hyperv1.HostedCluster) {
		return func(hc *hyperv1.HostedCluster) { hc.Annotations[key] = value }
	}
	sized := func(hc *hyperv1.HostedCluster) { hc.Labels[hyperv1.HostedClusterSizeLabel] = "medium" }
	for name, tc := range map[string]struct {
		hc    *hyperv1.HostedCluster
		hcp   *hyperv1.HostedControlPlane
		pools []hyperv1.NodePool
		want  string
	}{
		"When there is nothing yet it should be the smallest":                             {hc: hosted("a"), want: "small"},
		"When NodePools ask for nodes that are not there yet these should count":          {hc: hosted("a"), hcp: nodes(0), pools: []hyperv1.NodePool{fixed(7), fixed(4)}, want: "medium"},
		"When more nodes are there than asked for these should count":                     {hc: hosted("a"), hcp: nodes(101), pools: []hyperv1.NodePool{fixed(7)}, want: "large"},
		"When nobody counts nodes those of NodePools should count":                        {hc: hosted("a"), pools: []hyperv1.NodePool{fixed(3), scaled(1, 9)}, want: "medium"},
		"When the hosted API is away a cluster that has a size should keep it":            {hc: hosted("a", sized), pools: []hyperv1.NodePool{scaled(1, 0)}, want: ""},
		"When the hosted API is away and no pool is autoscaled the number is known":       {hc: hosted("a", sized), pools: []hyperv1.NodePool{fixed(3)}, want: "small"},
		"When an override names a size it should be that":                                 {hc: hosted("a", annotated(hyperv1.ClusterSizeOverrideAnnotation, "large")), hcp: nodes(1), want: "large"},
		"When an override names no size nothing should change":                            {hc: hosted("a", annotated(hyperv1.ClusterSizeOverrideAnnotation, "huge")), hcp: nodes(1), want: ""},
		"When a size is recommended and asked for it should be that":                      {hc: hosted("a", annotated(hyperv1.ResourceBasedControlPlaneAutoscalingAnnotation, "true"), annotated(hyperv1.RecommendedClusterSizeAnnotation, "medium")), hcp: nodes(1), want: "medium"},
		"When a recommendation is not there yet a new cluster should be the smallest":     {hc: hosted("a", annotated(hyperv1.ResourceBasedControlPlaneAutoscalingAnnotation, "true")), hcp: nodes(500), want: "small"},
		"When a recommendation is lost a cluster that has a size should keep it":          {hc: hosted("a", sized, annotated(hyperv1.ResourceBasedControlPlaneAutoscalingAnnotation, "true")), hcp: nodes(1), want: ""},
		"When a recommendation is there that nobody asked for the number of nodes counts": {hc: hosted("a", annotated(hyperv1.RecommendedClusterSizeAnnotation, "large")), hcp: nodes(1), want: "small"},
	} {
		t.Run(name, func(t *testing.T) {
			got := sizes.WantedFor(tc.hc, CountNodes(tc.hc, tc.hcp, tc.pools))
			NewWithT(t).Expect(got.Size).To(Equal(tc.want), got.Why)
			NewWithT(t).Expect(got.Why).NotTo(BeEmpty())
		})
	}
}

func TestDecide(t *testing.T) {
	spec := published()
	config := ConfigOf(&spec)
	want := func(size string) Want { return Want{Size: size, Why: "test"} }
	sized := func(size string, at time.Time) *hyperv1.HostedCluster {
		hc := hosted("a")
		take(hc, Decide(config, hc, want(size), nil, at))
		return hc
	}
	t.Run("When it has none the first size should come at once", func(t *testing.T) {
		d := Decide(config, hosted("a"), want("large"), nil, noon)
		NewWithT(t).Expect(d.To).To(Equal("large"))
		NewWithT(t).Expect(d.Label).To(Equal("large"))
	})
	t.Run("When it is as it should be nothing should be written", func(t *testing.T) {
		g, hc := NewWithT(t), sized("small", noon)
		d := Decide(config, hc, want("small"), nil, noon.Add(time.Hour))
		g.Expect(d.Conditions).To(ConsistOf(hc.Status.Conditions))
		g.Expect(d.To + d.From).To(BeEmpty())
	})
	t.Run("When more is wanted for the whole delay it should grow, and not before", func(t *testing.T) {
		g, hc, now := NewWithT(t), sized("small", noon), noon.Add(time.Hour)
		d := Decide(config, hc, want("medium"), nil, now)
		take(hc, d)
		g.Expect(d.To).To(BeEmpty())
		g.Expect(d.Again).To(Equal(30 * time.Second))
		g.Expect(conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeTransitionRequired).Reason).To(Equal("medium"))
		g.Expect(conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeTransitionPending).Reason).To(Equal(DelayNotElapsed))
		g.Expect(Decide(config, hc, want("medium"), nil, now.Add(29*time.Second)).To).To(BeEmpty())
		g.Expect(Decide(config, hc, want("medium"), nil, now.Add(30*time.Second)).To).To(Equal("medium"))
	})
	t.Run("When it is back before the delay is over the wait should be over, and begin anew", func(t *testing.T) {
		g, hc, now := NewWithT(t), sized("medium", noon), noon.Add(time.Hour)
		take(hc, Decide(config, hc, want("small"), nil, now))
		take(hc, Decide(config, hc, want("medium"), nil, now.Add(9*time.Minute)))
		g.Expect(conditions.IsFalse(hc.Status.Conditions, hyperv1.ClusterSizeTransitionRequired)).To(BeTrue())
		d := Decide(config, hc, want("small"), nil, now.Add(11*time.Minute))
		g.Expect(d.Again).To(Equal(10 * time.Minute))
	})
	t.Run("When somebody orders a size it should not wait", func(t *testing.T) {
		hc := sized("large", noon)
		d := Decide(config, hc, Want{Size: "small", Ordered: true}, nil, noon.Add(time.Second))
		NewWithT(t).Expect(d.To).To(Equal("small"))
	})
	t.Run("When nobody knows the size should stay, and the conditions should say why", func(t *testing.T) {
		g, hc := NewWithT(t), sized("large", noon)
		pass := func(why string) Decision {
			d := Decide(config, hc, Want{Why: why}, nil, noon.Add(time.Hour))
			take(hc, d)
			g.Expect(d.Label).To(Equal("large"))
			g.Expect(d.To + d.From).To(BeEmpty())
			g.Expect(current(hc)).To(Equal("large"))
			g.Expect(*conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeTransitionPending)).To(And(
				HaveField("Status", metav1.ConditionFalse), HaveField("Reason", SizeNotKnown), HaveField("Message", why)))
			return d
		}
		pass("annotation names size \"hgue\"")
		before := slices.Clone(hc.Status.Conditions)
		g.Expect(pass("annotation names size \"hgue\"").Conditions).To(ConsistOf(before), "nothing more is written")
		pass("annotation names size \"hueg\"")
	})
	t.Run("When a new cluster asks for a size that there isn't it should say why it has none, and get one later", func(t *testing.T) {
		g, hc := NewWithT(t), hosted("a")
		why := "annotation names size \"huge\""
		take(hc, Decide(config, hc, Want{Why: why}, nil, noon))
		g.Expect(*conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeComputed)).To(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Reason", SizeNotKnown), HaveField("Message", why)))
		g.Expect(current(hc)).To(BeEmpty())
		g.Expect(ClusterOf(hc, noon).Changed).To(BeZero(), "it is no change")
		before := slices.Clone(hc.Status.Conditions)
		g.Expect(Decide(config, hc, Want{Why: why}, nil, noon.Add(time.Hour)).Conditions).To(ConsistOf(before), "nothing more is written")
		d := Decide(config, hc, want("large"), nil, noon.Add(time.Hour))
		take(hc, d)
		g.Expect(d.To).To(Equal("large"))
		g.Expect(current(hc)).To(Equal("large"))
		g.Expect(ClusterOf(hc, noon).Changed).To(BeTemporally("==", noon.Add(time.Hour)))
	})
	t.Run("When sizes are switched off it should keep its size, and wait for no other", func(t *testing.T) {
		g, hc := NewWithT(t), sized("small", noon)
		take(hc, Decide(config, hc, want("medium"), nil, noon.Add(time.Hour)))
		take(hc, Decision{Conditions: Off(hc, noon.Add(2*time.Hour))})
		g.Expect(current(hc)).To(Equal("small"))
		for _, of := range Types[1:] {
			g.Expect(*conditions.Get(hc.Status.Conditions, of)).To(HaveField("Status", metav1.ConditionFalse))
		}
		g.Expect(conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeTransitionPending).Reason).To(Equal(SwitchedOff))
		g.Expect(Off(hc, noon.Add(3*time.Hour))).To(ConsistOf(hc.Status.Conditions), "nothing more is written")
		g.Expect(Off(hosted("b"), noon)).To(BeNil())
		take(hc, Decide(config, hc, want("medium"), nil, noon.Add(4*time.Hour)))
		g.Expect(conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeTransitionPending).Reason).To(Equal(DelayNotElapsed), "switched on again")
	})
	t.Run("When nobody knows any more what it waits for it should be ahead of nobody, and begin anew", func(t *testing.T) {
		g, now := NewWithT(t), noon.Add(time.Hour)
		one := config
		one.Limit = 1
		hc := sized("small", noon.Add(-time.Hour))
		take(hc, Decide(one, hc, want("medium"), nil, noon))
		take(hc, Decide(one, hc, want("medium"), []Cluster{{Changed: now}}, now))
		g.Expect(ClusterOf(hc, now).Waiting).NotTo(BeZero())
		unknown := Want{Why: "annotation names no size"}
		take(hc, Decide(one, hc, unknown, nil, now))
		g.Expect(ClusterOf(hc, now).Waiting).To(BeZero())
		pending := conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeTransitionPending)
		g.Expect(*pending).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", SizeNotKnown), HaveField("Message", unknown.Why)))
		g.Expect(conditions.IsFalse(hc.Status.Conditions, hyperv1.ClusterSizeTransitionRequired)).To(BeTrue())
		g.Expect(current(hc)).To(Equal("small"))
		g.Expect(Decide(one, hc, unknown, nil, now.Add(time.Minute)).Conditions).To(ConsistOf(hc.Status.Conditions), "nothing more is written")

		later := now.Add(time.Hour)
		other := hosted("b")
		take(other, Decide(one, other, want("small"), nil, noon.Add(-time.Hour)))
		take(other, Decide(one, other, want("medium"), nil, later))
		g.Expect(Decide(one, other, want("medium"), []Cluster{ClusterOf(hc, later), ClusterOf(other, later)}, later.Add(time.Minute)).To).To(Equal("medium"))
		g.Expect(Decide(one, hc, want("medium"), nil, later).Again).To(Equal(30*time.Second), "the whole delay again")
		take(hc, Decide(one, hc, want("small"), nil, later))
		g.Expect(conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeTransitionPending).Reason).To(Equal(Transitioned))
	})
	t.Run("When nobody knows during a delay it should begin anew", func(t *testing.T) {
		g, hc, now := NewWithT(t), sized("medium", noon), noon.Add(time.Hour)
		take(hc, Decide(config, hc, want("small"), nil, now))
		take(hc, Decide(config, hc, Want{Why: "nobody knows"}, nil, now.Add(time.Minute)))
		g.Expect(Decide(config, hc, want("small"), nil, now.Add(11*time.Minute)).Again).To(Equal(10 * time.Minute))
	})
	t.Run("When as many as may have changed it should wait for its turn, those first that waited longest", func(t *testing.T) {
		g, hc, now := NewWithT(t), sized("small", noon.Add(-time.Hour)), noon
		take(hc, Decide(config, hc, want("medium"), nil, now.Add(-time.Minute)))
		var fleet []Cluster
		for i := range 5 {
			fleet = append(fleet, Cluster{Changed: now.Add(-time.Duration(i) * time.Minute)})
		}
		d := Decide(config, hc, want("medium"), fleet, now)
		take(hc, d)
		g.Expect(d.To).To(BeEmpty())
		g.Expect(d.Again).To(Equal(6*time.Minute), "when the oldest leaves the window")
		g.Expect(conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeTransitionPending).Reason).To(Equal(ConcurrencyLimit))
		later := now.Add(6 * time.Minute)
		g.Expect(Decide(config, hc, want("medium"), fleet, later).To).To(Equal("medium"))
		fleet = append(fleet, Cluster{Waiting: now.Add(-time.Hour)})
		g.Expect(Decide(config, hc, want("medium"), fleet, later).To).To(BeEmpty(), "another one has waited longer")
	})
	t.Run("When it was never placed it should wait for no turn", func(t *testing.T) {
		hc := sized("small", noon.Add(-time.Hour))
		delete(hc.Annotations, hyperv1.HostedClusterScheduledAnnotation)
		d := Decide(config, hc, Want{Size: "large", Ordered: true}, []Cluster{{Changed: noon}, {Changed: noon}, {Changed: noon}, {Changed: noon}, {Changed: noon}}, noon)
		NewWithT(t).Expect(d.To).To(Equal("large"))
	})
}

// A number that wobbles around a border never makes a cluster change more often than the delay to smaller sizes lets it; a number that stays is
// followed within the delay.
func TestNoFlapping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := published()
		config := ConfigOf(&spec)
		hc := hosted("a")
		now := noon
		var changed []time.Time
		var sizes []string
		pass := func(n int) Decision {
			want := config.Sizes.WantedFor(hc, Nodes{Known: true, Count: n})
			d := Decide(config, hc, want, []Cluster{ClusterOf(hc, now)}, now)
			take(hc, d)
			if d.To != "" {
				changed, sizes = append(changed, now), append(sizes, d.To)
			}
			return d
		}
		for range rapid.IntRange(1, 200).Draw(t, "passes") {
			pass(rapid.IntRange(5, 15).Draw(t, "nodes"))
			now = now.Add(time.Duration(rapid.IntRange(1, 700).Draw(t, "seconds")) * time.Second)
		}
		for i := 1; i < len(changed); i++ {
			least := config.Increase
			if sizes[i] == "small" {
				least = config.Decrease
			}
			if d := changed[i].Sub(changed[i-1]); d < least {
				t.Fatalf("%s came %s after %s", sizes[i], d, sizes[i-1])
			}
		}
		n := rapid.IntRange(0, 200).Draw(t, "at last")
		for range 100 {
			d := pass(n)
			if d.Again == 0 {
				break
			}
			now = now.Add(d.Again)
		}
		if got := hc.Labels[hyperv1.HostedClusterSizeLabel]; got != config.Sizes.ForNodes(n).Name {
			t.Fatalf("%d nodes, and it is %s", n, got)
		}
		written := slices.Clone(hc.Status.Conditions)
		now = now.Add(time.Hour)
		pass(n)
		if fmt.Sprint(written) != fmt.Sprint(hc.Status.Conditions) {
			t.Fatal("something is written although nothing changed")
		}
	})
}

// TestModelFleet plays a day of a fleet of a thousand: nodes fail and come back, autoscalers breathe, some clusters grow for good.
func TestModelFleet(t *testing.T) {
	const clusters, day = 1000, 24 * time.Hour
	g := NewWithT(t)
	spec := published()
	spec.Concurrency.Limit = 50
	config := ConfigOf(&spec)
	dice := rand.New(rand.NewPCG(1, 2))
	var fleet []*hyperv1.HostedCluster
	base, next, changes, grown := make([]int, clusters), make([]time.Time, clusters), make([]int, clusters), map[int]time.Time{}
	for i := range clusters {
		fleet = append(fleet, hosted(fmt.Sprintf("c%04d", i)))
		base[i] = []int{3, 8, 10, 11, 12, 40, 99, 100, 101, 250}[dice.IntN(10)]
	}
	within := map[time.Time]int{} // changes by minute
	decided := 0
	for now := noon; now.Before(noon.Add(day)); now = now.Add(time.Minute) {
		seen := make([]Cluster, clusters)
		for i, hc := range fleet {
			seen[i] = ClusterOf(hc, now)
		}
		for i, hc := range fleet {
			if now.Equal(noon.Add(6*time.Hour)) && i%10 == 0 {
				base[i] += 150
				grown[i] = now
			}
			nodes := base[i]
			if dice.IntN(20) == 0 {
				nodes -= dice.IntN(3) // some fail, for less than the delay
			}
			want := config.Sizes.WantedFor(hc, Nodes{Known: true, Count: max(nodes, 0)})
			if want.Size == current(hc) && conditions.IsFalse(hc.Status.Conditions, hyperv1.ClusterSizeTransitionRequired) || now.Before(next[i]) && want.Size == requiredOf(hc) {
				continue
			}
			decided++
			d := Decide(config, hc, want, seen, now)
			take(hc, d)
			next[i], seen[i] = now.Add(d.Again), ClusterOf(hc, now)
			if d.To != "" && d.From != "" {
				changes[i]++
				within[now]++
			}
		}
	}
	total := 0
	for i, hc := range fleet {
		total += changes[i]
		most := 0
		if config.Sizes.ForNodes(base[i]).Name != config.Sizes.ForNodes(max(base[i]-150, 0)).Name || !grown[i].IsZero() {
			most = 1
		}
		// A cluster whose nodes are at a border may fail at its very first look, and be a size too small until then.
		g.Expect(changes[i]).To(BeNumerically("<=", most+1), "%s changed its size %d times with %d nodes", hc.Name, changes[i], base[i])
		g.Expect(hc.Labels[hyperv1.HostedClusterSizeLabel]).To(Equal(config.Sizes.ForNodes(base[i]).Name), hc.Name)
	}
	for at := range within {
		sum := 0
		for k := range 10 {
			sum += within[at.Add(-time.Duration(k)*time.Minute)]
		}
		g.Expect(sum).To(BeNumerically("<=", 50), "changes within ten minutes")
	}
	t.Logf("%d clusters, %d changes in a day, %d decisions", clusters, total, decided)
}

func requiredOf(hc *hyperv1.HostedCluster) string {
	if c := conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeTransitionRequired); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

func TestEffects(t *testing.T) {
	large := size("large", 0)
	large.Effects = &schedulingv1alpha1.Effects{
		KASGoMemLimit: "6GiB", ControlPlanePriorityClassName: ptr.To("gold"), EtcdPriorityClassName: ptr.To("gold-etcd"), APICriticalPriorityClassName: ptr.To("gold-api"),
		MachineHealthCheckTimeout: &metav1.Duration{Duration: 20 * time.Minute}, MaximumRequestsInflight: ptr.To(6000), MaximumMutatingRequestsInflight: ptr.To(2000),
		ResourceRequests: []schedulingv1alpha1.ResourceRequest{
			{DeploymentName: "kube-apiserver", ContainerName: "kube-apiserver", Memory: ptr.To(resource.MustParse("8Gi")), CPU: ptr.To(resource.MustParse("1500m"))},
			{DeploymentName: "etcd", ContainerName: "etcd", CPU: ptr.To(resource.MustParse("1"))},
		},
	}
	wanted := map[string]string{
		"hypershift.openshift.io/kube-apiserver-gomemlimit": "6GiB", "hypershift.openshift.io/control-plane-priority-class": "gold",
		"hypershift.openshift.io/etcd-priority-class": "gold-etcd", "hypershift.openshift.io/api-critical-priority-class": "gold-api",
		"hypershift.openshift.io/machine-health-check-timeout": "20m0s", "hypershift.openshift.io/kube-apiserver-max-requests-inflight": "6000",
		"hypershift.openshift.io/kube-apiserver-max-mutating-requests-inflight":           "2000",
		"resource-request-override.hypershift.openshift.io/kube-apiserver.kube-apiserver": "memory=8Gi,cpu=1500m",
		"resource-request-override.hypershift.openshift.io/etcd.etcd":                     "cpu=1",
	}
	apply := func(hc *hyperv1.HostedCluster, changes map[string]*string) {
		for key, value := range changes {
			if value == nil {
				delete(hc.Annotations, key)
			} else {
				hc.Annotations[key] = *value
			}
		}
	}
	g := NewWithT(t)
	g.Expect(Effects(&large)).To(Equal(wanted))
	hc := hosted("a")
	hc.Annotations["hypershift.openshift.io/restart-date"], hc.Annotations[hyperv1.EtcdPriorityClass] = "today", "silver"
	apply(hc, Changes(hc, Effects(&large)))
	for key, value := range wanted {
		g.Expect(hc.Annotations).To(HaveKeyWithValue(key, value))
	}
	g.Expect(Changes(hc, Effects(&large))).To(BeEmpty())
	small := size("small", 0)
	hc.Annotations[hyperv1.KubeAPIServerGOGCAnnotation] = "80"
	apply(hc, Changes(hc, Effects(&small)))
	for key := range wanted {
		g.Expect(hc.Annotations).NotTo(HaveKey(key), "what the new size lacks goes")
	}
	g.Expect(hc.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/restart-date", "today"))
	g.Expect(hc.Annotations).To(HaveKeyWithValue(hyperv1.KubeAPIServerGOGCAnnotation, "80"))
	t.Run("When the record names what no size can set it should be left alone", func(t *testing.T) {
		hc := hosted("b")
		hc.Annotations[AppliedAnnotation], hc.Annotations["hypershift.openshift.io/restart-date"] = "hypershift.openshift.io/restart-date", "today"
		NewWithT(t).Expect(Changes(hc, nil)).NotTo(HaveKey("hypershift.openshift.io/restart-date"))
	})
	t.Run("When it never had effects and has none nothing should be written", func(t *testing.T) {
		NewWithT(t).Expect(Changes(hosted("c"), map[string]string{})).To(BeEmpty())
	})
	g.Expect(strings.Split(hc.Annotations[AppliedAnnotation], ",")).To(Equal([]string{""}))
}
