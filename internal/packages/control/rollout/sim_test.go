package rollout

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// TestSimulation plays fleets with everything that goes wrong there, and checks after every write that nothing was done which must not be.
//
// SIM_SEEDS is how many seeds are played, SIM_FIRST the first of them; a failure prints the seed, and SIM_FIRST=seed SIM_SEEDS=1 replays it.
func TestSimulation(t *testing.T) {
	first, seeds := setting("SIM_FIRST", 1), setting("SIM_SEEDS", seedsByDefault)
	if testing.Short() {
		seeds = min(seeds, 200)
	}
	// Seeds are independent of each other, so that each core plays its own; the first that fails is reported.
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	failed := make([]error, seeds)
	var stop atomic.Bool
	for i := range seeds {
		group.Go(func() error {
			if !stop.Load() {
				failed[i] = simulate(uint64(first + i))
				stop.CompareAndSwap(false, failed[i] != nil)
			}
			return nil
		})
	}
	_ = group.Wait() // always nil
	for i, err := range failed {
		if err != nil {
			t.Fatalf("When fleets misbehave the rollout should stay safe: seed %d: %v", first+i, err)
		}
	}
}

func setting(name string, fallback int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n >= 0 {
		return n
	}
	return fallback
}

var errCrash = errors.New("the controller died")

// sim is the true state of a fleet, and what the controller's caches show of it.
type sim struct {
	*rand.Rand
	now      time.Time
	settings Settings
	clusters map[string]*simCluster // by namespace
	pkgs     map[string]*simPackage
	shownC   map[string]simCluster
	shownP   map[string]simPackage
	hcp      simOwner
	shownHCP simOwner
	lag      float64
	deaf     float64      // how often a write gets no answer, whether it landed or not
	broken   map[int]bool // versions that never become available
	uids     int
	newest   int  // version
	env      int  // the environment, which Packages are rendered for in their turn
	calm     bool // nothing fails any more
	writes   int
	crashAt  int // the write at which the controller dies; 0 never
	after    bool
	dead     bool
	err      error // the first broken invariant
	status   packagesv1.HostedClusterPackageStatus
	// known is what the controller remembers of its last change to a Package, by namespace; one that is started anew knows nothing.
	known map[string]simKnown
	// refuses are the namespaces where nothing can be written, and refused what the controller remembers of that.
	refuses map[string]bool
	refused map[string]simRefused
	// judge sees what a user sees.
	judge observer
}

type simKnown struct {
	uid    types.UID
	writes int
}

type simRefused struct {
	version int
	until   time.Time
}

type simCluster struct {
	name            types.NamespacedName
	label           string
	ready, deleting bool
	closed          bool // when it is not ready nothing can be written there
	asleep          bool
	matches         bool
}

type simPackage struct {
	uid                   types.UID
	version, generation   int
	observed              int // generation
	available, progressed bool
	held                  bool
	returnedFrom          int
	applied, settled      time.Time
	left                  int // ticks until it is up; -1 when nothing is under way
	// env is the environment that it was rendered for, wants the one that it says it waits for, 0 when it doesn't, and told the one that it was told to be
	// rendered for. None of them counts for its generation.
	env, wants, told int
	writes           int // of the rollout, that changed anything: they are in its resourceVersion
}

// turn tells that it was told to be rendered for another environment, and has not begun.
func (p *simPackage) turn() bool { return p.wants != 0 && p.told == p.wants }

type simOwner struct {
	version, good, resourceVersion int
	// completed is the version when its rollout was completed; 0 when it was not.
	completed  int
	processing []packagesv1.HostedClusterPackageRefStatus
}

func newSim(seed uint64) *sim {
	s := &sim{
		Rand: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), // must replay
		clusters: map[string]*simCluster{}, pkgs: map[string]*simPackage{}, shownC: map[string]simCluster{}, shownP: map[string]simPackage{},
		broken: map[int]bool{}, known: map[string]simKnown{}, refuses: map[string]bool{}, refused: map[string]simRefused{}, hcp: simOwner{version: 1, resourceVersion: 1}, env: 1,
	}
	s.judge = observer{sim: s, ours: map[string]bool{}, taken: map[string]bool{}, tried: map[string]bool{}}
	s.settings = Settings{Name: "addon", Generation: 1, MaxUnavailable: 1 + s.IntN(5)}
	switch s.IntN(4) {
	case 0:
	case 1:
		s.settings.Partitioned, s.settings.Static = true, []string{"c", "a", "*", "b"}
	case 2:
		s.settings.Partitioned, s.settings.Static = true, []string{"b", "a"}
	default:
		s.settings.Partitioned = true
	}
	if s.IntN(10) == 0 {
		s.settings.MaxUnavailable = Unlimited
	}
	s.settings.Options.OnFailure = Hold
	if s.IntN(3) == 0 {
		s.settings.Options = Options{Soak: time.Duration(s.IntN(5)) * time.Minute, Deadline: time.Duration(s.IntN(2)*(3+s.IntN(12))) * time.Minute,
			OnFailure: []OnFailure{Hold, ReturnCluster, ReturnGroup}[s.IntN(3)]}
		if s.settings.Options.Deadline == 0 {
			s.settings.Options.OnFailure = Hold
		}
	}
	s.lag = []float64{0, 0, 0.3, 0.8}[s.IntN(4)]
	s.deaf = []float64{0, 0.05, 0.5}[s.IntN(3)]
	fleet := 2 + s.IntN(25)
	if seed%500 == 0 {
		fleet = 2000
	}
	for range fleet {
		s.join()
	}
	return s
}

func simulate(seed uint64) error {
	s := newSim(seed)
	steps := 120
	if len(s.clusters) > 100 {
		steps = 25
		s.settings.MaxUnavailable = max(s.settings.MaxUnavailable, 1) * 100
	}
	for i := 0; i < steps && s.err == nil; i++ {
		s.events()
		s.deliver()
		s.step(i)
	}
	if s.err != nil {
		return s.err
	}
	return s.end()
}

// end lets failures end, and expects the rollout to end too, and then silence.
func (s *sim) end() error {
	s.calm, s.lag, s.crashAt = true, 0, 0
	s.broken = map[int]bool{}
	s.template() // a fix: what was returned has to be told something new
	for _, p := range s.pkgs {
		p.held = false
	}
	for _, c := range s.clusters {
		c.ready = true
	}
	s.night(false)
	if err := s.others(); err != nil {
		return err
	}
	// Each cluster takes a few passes when one is changed at a time, and as many again for soaking.
	bound := 400 + 30*len(s.clusters)
	for i := 0; ; i++ {
		s.tick()
		s.deliver()
		before := s.writes
		s.step(i)
		if s.err != nil {
			return s.err
		}
		if s.writes == before && s.finished() {
			break
		}
		if i > bound {
			return fmt.Errorf("the rollout did not end: %s", s)
		}
	}
	for i := range 3 {
		before := s.writes
		s.tick()
		s.deliver()
		s.step(i)
		if s.writes != before {
			return errors.New("a pass with nothing changed wrote")
		}
	}
	if len(s.hcp.processing) > 0 || s.status.UpdatedPackages != s.status.TotalPackages || s.status.Conditions[1].Reason != "AllPackagesProgressed" {
		return fmt.Errorf("a finished rollout reports %+v", s.status)
	}
	return nil
}

// others expects that one Package which can't be written starves nobody: the others of its group, and of those before, get the template.
func (s *sim) others() error {
	s.refuses = map[string]bool{}
	s.any(func(ns string, _ *simCluster) { s.refuses[ns] = true })
	defer func() { s.refuses = map[string]bool{} }()
	rank := func(ns string) int { return slices.Index(s.judge.groups(), groupOf(s.settings, s.clusters[ns].label)) }
	first := len(s.judge.groups())
	for ns := range s.refuses {
		if c := s.clusters[ns]; c.matches && !c.deleting {
			if p := s.pkgs[ns]; p == nil || !p.up() {
				return nil // it counts, and with a budget of one nobody goes on
			}
			first = rank(ns)
		}
	}
	for i := 0; i < 400+30*len(s.clusters); i++ {
		s.tick()
		s.deliver()
		if s.step(i); s.err != nil {
			return s.err
		}
		if s.finishedBut(func(ns string) bool { return s.refuses[ns] || rank(ns) > first }) {
			return nil
		}
	}
	return fmt.Errorf("somebody starves beside %v: %s", s.refuses, s)
}

func (s *sim) finished() bool { return s.finishedBut(func(string) bool { return false }) }

func (s *sim) finishedBut(except func(ns string) bool) bool {
	for ns, c := range s.clusters {
		if !c.matches || c.deleting || except(ns) {
			continue
		}
		p := s.pkgs[ns]
		if p == nil || p.version != s.hcp.version || p.env != s.env || p.wants != 0 || !p.up() || !p.progressed {
			return false
		}
	}
	return true
}

func (p *simPackage) up() bool { return p.available && p.observed == p.generation }

// step runs one pass of the controller, which may die in it.
func (s *sim) step(i int) {
	in := s.observe()
	s.dead, s.crashAt = false, 0
	if !s.calm && s.IntN(4) == 0 {
		s.crashAt, s.after = s.writes+1+s.IntN(4), s.IntN(2) == 0
	}
	if i%7 == 0 {
		s.deterministic(in)
	}
	fleet := s.judge.look()
	clear(s.judge.tried)
	s.judge.previous = slices.Clone(s.hcp.processing)
	plan, err := Step(context.Background(), s, in, s.now)
	if err != nil && !errors.Is(err, errCrash) && !errors.Is(err, errConflict) && !errors.Is(err, errNoAnswer) && !errors.Is(err, errRefused) {
		s.violated("unexpected error: %v", err)
	}
	if err == nil {
		s.judge.passes(fleet)
		s.judge.ends(fleet, plan)
		if plan.Finished { // the controller remembers it, whatever its caches show
			s.hcp.completed, s.shownHCP.completed = s.hcp.version, s.hcp.version
		}
	}
	if s.dead || !s.calm && s.IntN(50) == 0 {
		s.known, s.refused = map[string]simKnown{}, map[string]simRefused{}
	}
	for _, c := range plan.Apply {
		if c.UID == "" {
			s.violated("a change of nothing: %+v", c)
		}
	}
}

// deterministic expects the same plan whatever the order of lists.
func (s *sim) deterministic(in Observed) {
	other := in
	other.Clusters = slices.Clone(in.Clusters)
	s.Shuffle(len(other.Clusters), func(i, j int) { other.Clusters[i], other.Clusters[j] = other.Clusters[j], other.Clusters[i] })
	other.Processing = slices.Clone(in.Processing)
	slices.Reverse(other.Processing)
	a, b := Make(in, s.now), Make(other, s.now)
	slices.Reverse(b.Dropped)
	if !reflect.DeepEqual(a, b) {
		s.violated("the plan depends on the order of lists:\n%+v\n%+v", a, b)
	}
}

func (s *sim) observe() Observed {
	in := Observed{Settings: s.settings, Packages: map[string]Package{}, Processing: s.shownHCP.processing, Refused: map[string]string{}}
	for ns, r := range s.refused {
		if r.version == s.shownHCP.version && s.now.Before(r.until) {
			in.Refused[ns] = "somebody else owns it"
		}
	}
	in.Settings.Generation = int64(s.shownHCP.version)
	in.Settings.Completed = s.shownHCP.completed == s.shownHCP.version
	in.Settings.HasGood = s.shownHCP.good > 0 && !in.Settings.Completed
	for ns, c := range s.shownC {
		if !c.matches {
			continue
		}
		out := Cluster{Name: c.name, Namespace: ns, Label: c.label, Leaving: c.deleting}
		switch {
		case c.asleep && !c.deleting:
			out.Unready, out.Closed, out.Asleep = "hibernates", true, true
		case !c.ready || c.deleting:
			out.Unready, out.Closed = "is not Available", c.closed
		}
		in.Clusters = append(in.Clusters, out)
		if p, ok := s.shownP[ns]; ok {
			in.Packages[ns] = s.view(ns, p)
		}
	}
	for ns, p := range s.shownP {
		if c, ok := s.shownC[ns]; !ok || !c.matches {
			in.Orphans = append(in.Orphans, s.view(ns, p))
		}
	}
	slices.SortFunc(in.Clusters, func(a, b Cluster) int { return strings.Compare(a.Namespace, b.Namespace) })
	return in
}

func (s *sim) view(ns string, p simPackage) Package {
	fresh := p.observed == p.generation
	out := Package{
		UID: p.uid, Namespace: ns, Held: p.held,
		Current: p.version == s.shownHCP.version && !p.held, Good: p.version == s.shownHCP.good && !p.held,
		Available: fresh && p.available, Progressed: fresh && p.progressed, Paused: fresh && p.held,
		Unreported: !fresh && p.available,
		Returned:   p.returnedFrom == s.shownHCP.version, AppliedAt: p.applied, SettledAt: p.settled,
		Fresh: s.known[ns].uid == p.uid && s.known[ns].writes <= p.writes,
	}
	if p.wants != 0 {
		out.Environment = fmt.Sprint(p.wants)
		out.Progressed = out.Progressed && !p.turn()
		out.Current = out.Current && p.turn()
	}
	return out
}

func (s *sim) violated(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

func (s *sim) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v version %d good %d processing %v\n", s.settings, s.hcp.version, s.hcp.good, s.hcp.processing)
	for ns, c := range s.clusters {
		fmt.Fprintf(&b, "%s %+v %+v\n", ns, *c, s.pkgs[ns])
	}
	for _, d := range Make(s.observe(), s.now).Decisions {
		fmt.Fprintf(&b, "%+v\n", d)
	}
	return b.String()
}
