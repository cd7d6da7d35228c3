package plan

import (
	"bytes"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func anyPlan(t *rapid.T) (uint64, time.Duration) {
	return rapid.Uint64().Draw(t, "seed"), time.Duration(rapid.Int64Range(0, int64(3*time.Hour)).Draw(t, "length"))
}

func TestFor(t *testing.T) {
	t.Run("When a seed is given twice it should make the same plan, within its bounds", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			seed, length := anyPlan(t)
			g, p := NewWithT(t), For(seed, length)
			g.Expect(For(seed, length)).To(Equal(p))
			g.Expect(Check(p)).To(Succeed())
			g.Expect(p.Storm).To(BeNumerically("<", p.Length))
			g.Expect(p.Harm(0, p.Storm)).To(BeNumerically("<=", p.Storm))
			begin := time.Duration(rapid.Int64Range(0, int64(p.Length)).Draw(t, "begin"))
			deadline := p.Deadline(begin, time.Minute)
			g.Expect(deadline-begin-p.Harm(begin, deadline)).To(Equal(time.Minute), "who is held up by faults gets as much more time")
		})
	})
	t.Run("When there are many seeds they should play everything", func(t *testing.T) {
		g := NewWithT(t)
		seen, targets := map[Kind]int{}, map[string]int{}
		for seed := range uint64(200) {
			for _, s := range For(seed, 20*time.Minute).Steps {
				seen[s.Kind]++
				targets[s.Target()]++
			}
		}
		for _, kind := range []Kind{Kill, Stop, Partition, Registry, SlowRegistry, Loss, Apart, Templates, Packages, Requests, Signing, Create, Destroy, Upgrade, Roll, Scale, Fleet, Package, ClusterPackage} {
			g.Expect(seen[kind]).To(BeNumerically(">", 50), string(kind))
		}
		for _, target := range []string{"machine/kubelet", "machine/etcd", "operators/hypershift-operator", "workers/machine", "demo/cluster-api", "hosted6/etcd"} {
			g.Expect(targets[target]).To(BeNumerically(">", 5), target)
		}
	})
	t.Run("When a plan is short it should have faults all the same", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			p, faults := For(rapid.Uint64().Draw(t, "seed"), 5*time.Minute), 0
			for _, s := range p.Steps {
				if s.Fault() {
					faults++
				}
			}
			NewWithT(t).Expect(faults).To(BeNumerically(">=", 3))
		})
	})
}

// TestStored fails when seeds mean something else than they did: what somebody noted of a seed would be worth nothing.
func TestStored(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	g.Expect(For(1, 5*time.Minute).Print(&out)).To(Succeed())
	const file = "testdata/seed-1.jsonl"
	if os.Getenv("UPDATE") != "" {
		g.Expect(os.MkdirAll("testdata", 0o755)).To(Succeed())
		g.Expect(os.WriteFile(file, out.Bytes(), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out.String()).To(Equal(string(want)))
}

func TestCheck(t *testing.T) {
	kill := func(at, long int, place, program string) Step {
		return Step{At: time.Duration(at) * time.Second, For: time.Duration(long) * time.Second, Kind: Stop, Place: place, Program: program}
	}
	for name, tc := range map[string]struct {
		steps []Step
		want  string
	}{
		"When three go on at once it should say so":        {[]Step{kill(0, 30, "demo", "a"), kill(1, 30, "demo", "b"), kill(2, 3, "demo", "c")}, "step 3, stop of demo/c at 2s: it comes too soon"},
		"When one meets the machine it should be alone":    {[]Step{kill(0, 30, "demo", "a"), kill(1, 3, Machine, "etcd")}, "step 2"},
		"When a target has no rest it should say so":       {[]Step{kill(0, 5, "demo", "a"), kill(24, 5, "demo", "a")}, "step 2"},
		"When a fault has no end it should say so":         {[]Step{kill(0, 50, "demo", "a")}, "it ends at 50s"},
		"When a fault outlasts the storm it should say so": {[]Step{kill(80, 30, "demo", "a")}, "it ends at 1m50s"},
		"When steps are not in order it should say so":     {[]Step{kill(80, 1, "demo", "a"), kill(0, 1, "demo", "b")}, "step 2, stop of demo/b at 0s: it is not in order"},
		"When what isn't there is destroyed it should say": {[]Step{{Kind: Destroy, Cluster: 1}}, "it can't be destroyed"},
		"When it is destroyed twice it should say so":      {[]Step{{Kind: Create, Cluster: 1}, {Kind: Destroy, Cluster: 1}, {Kind: Destroy, Cluster: 1}}, "step 3"},
		"When it is made twice it should say so":           {[]Step{{Kind: Create, Cluster: 1}, {Kind: Create, Cluster: 1}}, "it was made before"},
		"When nobody is met it should say so":              {[]Step{{Kind: Kill}}, "it meets nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range tc.steps {
				tc.steps[i].Number = i + 1
			}
			NewWithT(t).Expect(Check(Plan{Storm: 100 * time.Second, Clusters: 1, Steps: tc.steps})).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestHarm(t *testing.T) {
	g := NewWithT(t)
	p := Plan{Steps: []Step{
		{At: 10 * time.Second, For: 20 * time.Second, Kind: Stop}, {At: 15 * time.Second, For: 5 * time.Second, Kind: Stop}, {At: 25 * time.Second, For: 10 * time.Second, Kind: Stop},
		{At: 40 * time.Second, For: 10 * time.Second, Kind: Create},
	}}
	g.Expect(p.Harm(0, time.Minute)).To(Equal(25*time.Second), "what overlaps counts once, and work does not")
	g.Expect(p.Harm(12*time.Second, 14*time.Second)).To(Equal(2 * time.Second))
	g.Expect(p.Harm(36*time.Second, time.Minute)).To(BeZero())
}

func TestDeadline(t *testing.T) {
	p := Plan{Steps: []Step{{At: 10 * time.Second, For: 20 * time.Second, Kind: Stop}, {At: 15 * time.Second, For: 30 * time.Second, Kind: Stop}, {At: time.Minute, For: 10 * time.Second, Kind: Stop}}}
	for name, tc := range map[string]struct{ begin, bound, want time.Duration }{
		"When it ends before any fault it should be as it is":                   {0, 10 * time.Second, 10 * time.Second},
		"When it would end a moment into a fault it should end that much later": {0, 10*time.Second + 1, 45*time.Second + 1},
		"When it begins within a fault its time should begin after it":          {20 * time.Second, 5 * time.Second, 50 * time.Second},
		"When it meets several it should wait for each":                         {0, 30 * time.Second, 75 * time.Second},
		"When faults are over it should be as it is":                            {2 * time.Minute, time.Minute, 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(p.Deadline(tc.begin, tc.bound)).To(Equal(tc.want)) })
	}
}
