package adversary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"hcp.internal/platform/test/adversary/fault"
	"hcp.internal/platform/test/adversary/plan"
	"hcp.internal/platform/test/adversary/watch"
	"hcp.internal/platform/test/adversary/work"
	"hcp.internal/platform/test/adversary/world"
)

// Options of a run.
type Options struct {
	Seed uint64
	// Length is about how long it takes; see plan.For.
	Length time.Duration
	// StateDir is that of the local cluster that runs, Root the repository.
	StateDir, Root string
	// Log gets a line of JSON for each thing that is done or found.
	Log io.Writer
	// Slack is by how much each bound of time is multiplied, for machines that do something else besides; less than 2 is none. What never ends is found all the same.
	Slack int
}

// patience is how long something may take that takes bound at most.
func (o Options) patience(bound time.Duration) time.Duration {
	return bound * time.Duration(max(o.Slack, 1))
}

// Violation is a promise that didn't hold.
type Violation struct {
	Invariant string        `json:"invariant"`
	What      string        `json:"what"`
	At        time.Duration `json:"at"` // from the beginning of the storm
}

func (v Violation) String() string {
	return fmt.Sprintf("%s, %s after the beginning: %s", v.Invariant, v.At.Round(time.Second), v.What)
}

// Report is what a run found.
type Report struct {
	Plan       plan.Plan
	Violations []Violation
	// Played steps met somebody; Skipped met nobody, as a hosted cluster that waits for room has no processes.
	Played, Skipped int
}

// recoverBound is how long hosted clusters may take after the last fault to be as they should be: a machine boots in a minute, and a rollout that is in its
// middle replaces two.
const recoverBound = 5 * time.Minute

// prepareBound is how long it may take to make what a plan needs, with nothing harmed yet.
const prepareBound = 2 * time.Minute

// packagesBound is how long operators may take then to say what became of the last change of each package.
const packagesBound = time.Minute

// run is one run.
type run struct {
	Options
	plan    plan.Plan
	world   *world.World
	journal *fault.Journal
	faults  *fault.Faults
	work    *work.Work
	secrets *watch.Secrets
	log     *slog.Logger
	begin   time.Time

	mu      sync.Mutex
	report  Report
	writers map[int]*writing
	going   map[string]bool
}

// writing is a writer that can be ended.
type writing struct {
	*watch.Writer
	stop  context.CancelFunc
	ended chan struct{}
}

// Run plays the plan of a seed against the local cluster that is up. What it finds is in the report; an error says that it could not be played, or was
// interrupted. Whatever was harmed is healed when it returns.
func Run(ctx context.Context, o Options) (Report, error) {
	r := &run{Options: o, plan: plan.For(o.Seed, o.Length), writers: map[int]*writing{}, going: map[string]bool{}}
	r.log = slog.New(slog.NewJSONHandler(o.Log, nil)).With("seed", o.Seed)
	r.report.Plan = r.plan
	if err := plan.Check(r.plan); err != nil {
		return r.report, fmt.Errorf("the plan of seed %d breaks its own bounds: %w", o.Seed, err)
	}
	w, err := world.Open(o.StateDir, filepath.Join(o.Root, "bin"), r.log)
	if err != nil {
		return r.report, err
	}
	r.world = w
	if r.journal, err = heal(o.StateDir, r.log); err != nil {
		return r.report, err
	}
	defer r.journal.Close()
	defer func() { _, _ = r.journal.UndoAll() }()
	r.faults = &fault.Faults{World: w, Journal: r.journal, Hostile: fault.Hostile{Folder: filepath.Join(o.Root, "internal/packages/author/fixture/testdata/hostile"), Violated: r.violated}}
	r.work = &work.Work{World: w, Made: r.made, Going: r.goes, Deadline: r.deadline, Late: func(what string) { r.violated("deletions end", what) }}
	r.secrets = &watch.Secrets{World: w, Violated: r.violated}
	r.begin = time.Now()
	err = r.play(ctx)
	return r.report, err
}

// Heal undoes what a run that was killed left behind in a state folder.
func Heal(stateDir string, log io.Writer) error {
	j, err := heal(stateDir, slog.New(slog.NewJSONHandler(log, nil)))
	if err != nil {
		return err
	}
	return j.Close()
}

func heal(stateDir string, log *slog.Logger) (*fault.Journal, error) {
	j, err := fault.OpenJournal(filepath.Join(stateDir, "adversary.journal"))
	if err != nil {
		return nil, fmt.Errorf("opening the journal of what has to be undone (is the local cluster up?): %w", err)
	}
	n, err := j.UndoAll()
	if n > 0 {
		log.Info("undone what an earlier run left behind", "faults", n)
	}
	return j, err
}

func (r *run) play(ctx context.Context) error {
	// What an earlier run that was killed has made is not ours to judge.
	every := make([]int, 0, plan.MaxClusters)
	for c := 1; c <= plan.MaxClusters; c++ {
		every = append(every, c)
	}
	late := r.work.Late
	r.work.Late = func(string) {}
	if err := r.work.Clean(ctx, every); err != nil {
		return fmt.Errorf("cleaning up after an earlier run: %w", err)
	}
	r.work.Late = late
	if err := watch.Recovered(ctx, r.world, plan.Demo, r.patience(recoverBound)); err != nil {
		return fmt.Errorf("the demo cluster isn't healthy before anything is harmed: %w", err)
	}
	before, err := watch.StillMachine(ctx, r.world, r.patience(prepareBound))
	if err != nil {
		return fmt.Errorf("the machine isn't at rest before anything is harmed: %w", err)
	}
	canary := fmt.Sprintf("canary-%d-%d", r.Seed, time.Now().UnixNano())
	err = world.Until(ctx, r.patience(prepareBound), func(ctx context.Context) error {
		return errors.Join(r.work.Prepare(ctx, r.plan), r.secrets.Prepare(ctx, canary))
	})
	if err != nil {
		return fmt.Errorf("preparing what the plan needs: %w", err)
	}
	r.begin = time.Now()
	r.log.Info("storm begins", "length", r.plan.Storm.String(), "clusters", r.plan.Clusters, "steps", len(r.plan.Steps))
	if err := r.storm(ctx); err != nil {
		return err
	}
	r.log.Info("storm is over", "played", r.report.Played, "skipped", r.report.Skipped, "tenantsTries", r.secrets.Tries())
	return r.after(ctx, before)
}

// storm plays all steps at their times, with everybody watching, and returns when the last one is over.
func (r *run) storm(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	var watchers, steps sync.WaitGroup
	budget := &watch.Budget{Name: work.Fleet, Max: work.Budget, Violated: r.violated, Leaving: r.leaving}
	watchers.Go(func() { budget.Run(watching, r.world) })
	watchers.Go(func() { r.secrets.Run(watching) })
	defer func() {
		stop()
		watchers.Wait()
	}()
	r.made(plan.Demo)
	for _, s := range r.plan.Steps {
		if !world.Wait(ctx, time.Until(r.begin.Add(s.At))) {
			break
		}
		steps.Go(func() { r.step(ctx, s) })
	}
	steps.Wait() // each ends by itself
	world.Wait(ctx, time.Until(r.begin.Add(r.plan.Storm)))
	return ctx.Err()
}

func (r *run) step(ctx context.Context, s plan.Step) {
	begin := time.Now()
	log := r.log.With("step", s.Number, "kind", s.Kind, "target", s.Target(), "planned", s.At.String())
	log.Info("begins", "at", begin.Sub(r.begin).Round(time.Millisecond).String(), "for", s.For.String(), "count", s.Count, "version", s.Version)
	var met string
	var err error
	if s.Fault() {
		met, err = r.faults.Play(ctx, s)
	} else {
		err = r.work.Play(ctx, s)
	}
	skipped := s.Fault() && err != nil
	r.mu.Lock()
	if skipped {
		r.report.Skipped++
	} else {
		r.report.Played++
	}
	r.mu.Unlock()
	end := []any{"at", time.Since(r.begin).Round(time.Millisecond).String(), "met", met}
	switch {
	case err == nil:
		log.Info("ends", end...)
	case errors.Is(err, world.ErrNobody):
		log.Info("meets nobody", append(end, "why", err.Error())...)
	default:
		log.Info("fails", append(end, "error", err.Error())...)
		if !s.Fault() && ctx.Err() == nil && !r.pointless(s) {
			r.violated("users can work", fmt.Sprintf("step %d, %s of %s, was not accepted: %v", s.Number, s.Kind, s.Target(), err))
		}
	}
}

// pointless says that a step failed since its hosted cluster goes.
func (r *run) pointless(s plan.Step) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.going[world.ControlPlane(s.Cluster)]
}

// after is what is looked at when nothing is harmed any more.
func (r *run) after(ctx context.Context, before watch.Machine) error {
	if n, err := r.journal.UndoAll(); n > 0 || err != nil {
		r.violated("faults end", fmt.Sprintf("%d were not undone by themselves: %v", n, err))
	}
	if err := world.Until(ctx, r.patience(recoverBound), func(ctx context.Context) error { return watch.OperatorsUp(ctx, r.world) }); err != nil && ctx.Err() == nil {
		r.violated("everything recovers", "operators: "+err.Error())
	}
	clusters := r.alive()
	for _, c := range clusters {
		if err := watch.Recovered(ctx, r.world, c, r.patience(recoverBound)); err != nil && ctx.Err() == nil {
			r.violated("everything recovers", err.Error())
		}
	}
	if err := world.Until(ctx, r.patience(packagesBound), func(ctx context.Context) error { return watch.Heard(ctx, r.world) }); err != nil && ctx.Err() == nil {
		r.violated("everything recovers", "packages: "+err.Error())
	}
	r.log.Info("recovered", "at", time.Since(r.begin).Round(time.Second).String())
	for _, c := range clusters {
		r.verify(ctx, c)
	}
	r.log.Info("everything is destroyed", "clusters", len(clusters)-1)
	if err := r.work.Clean(ctx, slices.DeleteFunc(slices.Clone(clusters), func(c int) bool { return c == plan.Demo })); err != nil {
		return err
	}
	if err := r.nothingLeft(ctx, before); err != nil {
		return err
	}
	return r.quiet(ctx)
}

func (r *run) violated(invariant, what string) {
	at := time.Since(r.begin)
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.report.Violations, func(v Violation) bool { return v.Invariant == invariant && v.What == what }) {
		return // said once
	}
	r.report.Violations = append(r.report.Violations, Violation{Invariant: invariant, What: what, At: at})
	r.log.Error("violation", "invariant", invariant, "what", what, "at", at.Round(time.Millisecond).String())
}

// deadline is bound, with the slack of the run, and as much more as faults go on.
func (r *run) deadline(bound time.Duration) time.Duration {
	begin := time.Since(r.begin)
	return r.plan.Deadline(begin, r.patience(bound)) - begin
}
