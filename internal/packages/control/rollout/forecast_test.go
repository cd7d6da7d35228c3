package rollout

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// player is a fleet whose Packages are down for as long as a forecast assumes. It carries out what Step asks for, and notes when.
type player struct {
	Observed
	now   time.Time
	took  time.Duration
	upAt  map[string]time.Time
	notes []string
}

func (p *player) Look(_ context.Context, namespaces []string) (map[string]Package, error) {
	out := map[string]Package{}
	for _, ns := range namespaces {
		if x, ok := p.Packages[ns]; ok {
			out[ns] = x
		}
	}
	return out, nil
}

func (p *player) Record(_ context.Context, s packagesv1.HostedClusterPackageStatus) error {
	p.Processing = s.Processing
	return nil
}

func (p *player) Report(ctx context.Context, s packagesv1.HostedClusterPackageStatus) error {
	return p.Record(ctx, s)
}

func (p *player) Delete(context.Context, Package) error { return nil }

func (p *player) Apply(_ context.Context, changes []Change) []error {
	p.Packages = maps.Clone(p.Packages) // the pass has the old one
	for _, c := range changes {
		x := p.Packages[c.Namespace]
		x.UID, x.Namespace, x.Current, x.Available, x.Progressed, x.Unreported = types.UID("uid-"+c.Cluster.Name), c.Namespace, true, false, false, false
		p.Packages[c.Namespace], p.upAt[c.Namespace] = x, p.now.Add(p.took)
		p.notes = append(p.notes, fmt.Sprintf("%s %s", p.now.Sub(noon), c.Cluster.Name))
	}
	return make([]error, len(changes))
}

// play goes on until nothing moves.
func (p *player) play() error {
	for {
		notes := len(p.notes)
		if _, err := Step(context.Background(), p, p.Observed, p.now); err != nil {
			return err
		}
		if len(p.notes) > notes {
			continue
		}
		var next time.Time
		for _, t := range p.upAt {
			if next.IsZero() || t.Before(next) {
				next = t
			}
		}
		if p.now = next; next.IsZero() {
			return nil
		}
		for ns, t := range p.upAt {
			if !t.After(next) {
				x := p.Packages[ns]
				x.Available, x.Progressed, x.Unreported = true, true, false
				p.Packages[ns] = x
				delete(p.upAt, ns)
			}
		}
	}
}

// TestForecastIsTrue compares what is foretold with what a rollout does, from whatever state it begins in.
func TestForecastIsTrue(t *testing.T) {
	t.Run("When Packages behave as assumed the rollout should do what its plan said, at the times that it said", func(t *testing.T) {
		for seed := range uint64(2000) {
			r := rand.New(rand.NewPCG(seed, 3)) // must replay
			f := newFleet(Settings{MaxUnavailable: 1 + r.IntN(3), Partitioned: r.IntN(3) > 0, Options: Options{OnFailure: Hold}})
			for i := range 2 + r.IntN(8) {
				name := fmt.Sprintf("c%d", i)
				c := Cluster{Name: types.NamespacedName{Namespace: "ns", Name: name}, Namespace: "ns-" + name, Label: labels[r.IntN(4)]}
				if r.IntN(8) == 0 {
					c.Unready, c.Closed = "is not Available", r.IntN(2) == 0
				}
				f.in.Clusters = append(f.in.Clusters, c)
				p := Package{UID: types.UID("uid-" + name), Namespace: c.Namespace, Current: r.IntN(3) == 0, Available: true, Progressed: true}
				switch r.IntN(6) {
				case 0: // in flight, and up by the revision before
					p.Progressed = false
					f.in.Processing = append(f.in.Processing, packagesv1.HostedClusterPackageRefStatus{UID: p.UID, Namespace: p.Namespace})
				case 1: // in flight, and not heard of
					p.Available, p.Progressed, p.Unreported = false, false, true
					f.in.Processing = append(f.in.Processing, packagesv1.HostedClusterPackageRefStatus{UID: p.UID, Namespace: p.Namespace})
				case 2: // broken by itself
					p.Available = false
				case 3:
					continue // to be made
				}
				f.in.Packages[c.Namespace] = p
			}
			world := &player{Observed: f.in, now: noon, took: 5 * time.Minute, upAt: map[string]time.Time{}}
			foretold := Predict(f.in, Assumptions{PerCluster: world.took}, noon)
			for _, name := range foretold.Awaited {
				world.upAt["ns-"+name.Name] = noon.Add(world.took)
			}
			g := NewWithT(t)
			g.Expect(world.play()).To(Succeed())
			var want []string
			for _, w := range foretold.Waves {
				for _, c := range w.Clusters {
					want = append(want, fmt.Sprintf("%s %s", w.After, c.Name))
				}
				g.Expect(len(w.Clusters)).To(BeNumerically("<=", len(f.in.Clusters)))
			}
			g.Expect(world.notes).To(Equal(want), "seed %d", seed)
			done := !slices.ContainsFunc(f.in.Clusters, func(c Cluster) bool { return !c.Closed && !world.Packages[c.Namespace].done() && c.Unready == "" })
			g.Expect(foretold.Finished && !done).To(BeFalse(), "seed %d: %s", seed, strings.Join(want, ", "))
		}
	})
}
