package etcdinit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

var (
	self     = Peer{Name: "etcd-2", URL: "https://etcd-2:2380"}
	founders = []Peer{{Name: "etcd-0", URL: "https://etcd-0:2380"}, {Name: "etcd-1", URL: "https://etcd-1:2380"}, self}
)

// member is a serving member by default.
func member(id uint64, name string, mutate ...func(*Member)) Member {
	m := Member{ID: id, Name: name, PeerURLs: []string{"https://" + name + ":2380"}, ClientURLs: []string{"https://" + name + ":2379"}}
	for _, f := range mutate {
		f(&m)
	}
	return m
}

func neverServed(m *Member)  { m.ClientURLs = nil }
func neverStarted(m *Member) { m.Name, m.ClientURLs = "", nil }

func TestPlan(t *testing.T) {
	others := []Member{member(1, "etcd-0"), member(2, "etcd-1")}
	with := func(m Member) []Member { return append(slices.Clone(others), m) }
	for name, tc := range map[string]struct {
		obs  Observed
		want Plan
	}{
		"When there is data it should start as it was and touch no cluster": {
			obs: Observed{Self: self, HasData: true, Cluster: with(member(3, "etcd-2"))}, want: Plan{State: StateNew},
		},
		"When there is no data and no cluster it should found one": {
			obs: Observed{Self: self}, want: Plan{State: StateNew},
		},
		"When the cluster was founded and nobody answers it should wait": {
			obs: Observed{Self: self, Founded: true}, want: Plan{},
		},
		"When the others founded the cluster before us it should start as a founder": {
			obs: Observed{Self: self, Cluster: with(member(3, "etcd-2", neverServed))}, want: Plan{State: StateNew},
		},
		"When the disk of a member was lost it should be replaced": {
			obs: Observed{Self: self, Cluster: with(member(3, "etcd-2"))}, want: Plan{Remove: 3, Add: true, State: StateExisting},
		},
		"When a replacement died after it was added it should join as that": {
			obs: Observed{Self: self, Cluster: with(member(4, "etcd-2", neverStarted))}, want: Plan{State: StateExisting},
		},
		"When a replacement died after the removal it should be added": {
			obs: Observed{Self: self, Cluster: others}, want: Plan{Add: true, State: StateExisting},
		},
		"When the member is known by another address it should be replaced": {
			obs:  Observed{Self: self, Cluster: with(member(3, "etcd-2", func(m *Member) { m.PeerURLs = []string{"https://old:2380"} }))},
			want: Plan{Remove: 3, Add: true, State: StateExisting},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			got := planFor(tc.obs)
			g.Expect(got.Why).NotTo(BeEmpty())
			got.Why = ""
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

// What planFor promises, over clusters of any shape.
func TestPlanNeverHarms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obs := Observed{Self: self, HasData: rapid.Bool().Draw(t, "data"), Founded: rapid.Bool().Draw(t, "founded")}
		for i := range rapid.IntRange(0, 5).Draw(t, "members") {
			m := member(uint64(i+1), fmt.Sprintf("etcd-%d", rapid.IntRange(0, 4).Draw(t, "name")))
			switch rapid.IntRange(0, 2).Draw(t, "life") {
			case 1:
				neverServed(&m)
			case 2:
				neverStarted(&m)
			}
			obs.Cluster = append(obs.Cluster, m)
		}
		plan := planFor(obs)
		if obs.HasData && (plan.Remove != 0 || plan.Add) {
			t.Fatalf("changes members although there is data: %+v", plan)
		}
		if plan.Remove != 0 && !plan.Add {
			t.Fatalf("removes a member without a replacement: %+v", plan)
		}
		if plan.State == StateNew && !obs.HasData && obs.Founded && len(obs.Cluster) == 0 {
			t.Fatalf("founds a second cluster: %+v", plan)
		}
		for _, m := range obs.Cluster {
			mine := m.Name == self.Name || slices.Contains(m.PeerURLs, self.URL)
			if m.ID == plan.Remove && !mine {
				t.Fatalf("removes somebody else: %+v", m)
			}
		}
	})
}

func TestInitialCluster(t *testing.T) {
	t.Run("When joining it should list exactly the cluster's members, with our name for ourselves", func(t *testing.T) {
		got := initialCluster([]Member{member(2, "etcd-1", neverStarted), member(1, "etcd-0"), member(9, "etcd-2", neverStarted)}, self, founders)
		NewWithT(t).Expect(got).To(Equal("etcd-0=https://etcd-0:2380,etcd-1=https://etcd-1:2380,etcd-2=https://etcd-2:2380"))
	})
}

func TestConfig(t *testing.T) {
	env := map[string]string{"POD_NAME": "etcd-0", "NAMESPACE": "clusters-demo"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	t.Run("When the template refers to the environment it should fill it in", func(t *testing.T) {
		g := NewWithT(t)
		c, err := parseConfig("name: $(POD_NAME)\ninitial-cluster: $(POD_NAME)=https://$(POD_NAME).etcd-discovery.$(NAMESPACE).svc:2380\nsnapshot-count: 10000\n", lookup)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.text(keyName)).To(Equal("etcd-0"))
		g.Expect(c.members()).To(Equal([]Peer{{Name: "etcd-0", URL: "https://etcd-0.etcd-discovery.clusters-demo.svc:2380"}}))
	})
	t.Run("When a variable is unknown it should name it", func(t *testing.T) {
		_, err := parseConfig("name: $(POD_NAEM)", lookup)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("not in the environment: POD_NAEM")))
	})
	t.Run("When the list of members is malformed it should quote the part", func(t *testing.T) {
		g := NewWithT(t)
		c, err := parseConfig("initial-cluster: a=b,c", lookup)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = c.members()
		g.Expect(err).To(MatchError(ContainSubstring(`"c" is not name=url`)))
	})
}

func FuzzParseConfig(f *testing.F) {
	f.Add("name: $(POD_NAME)\ninitial-cluster: a=b")
	f.Add("- 1\n- 2")
	f.Add("$(")
	f.Fuzz(func(t *testing.T, template string) {
		c, err := parseConfig(template, func(name string) (string, bool) { return strings.ToLower(name), true })
		if err == nil {
			_, _ = c.members() // must not panic
		}
	})
}
