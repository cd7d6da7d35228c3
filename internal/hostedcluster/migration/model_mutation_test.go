package migration

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// mutation is a mistake that somebody could make in the program. The model has to notice each of them, or it proves nothing.
type mutation struct {
	// observe overlooks something, plan decides otherwise, writes does a step otherwise (nil: as it should be).
	observe func(*Observed)
	plan    func(Observed, Plan) Plan
	writes  func(*model, Step) []func()
}

// phased is a mistake in one phase alone.
func phased(phase Phase, wrong func(Observed, Plan) Plan) func(Observed, Plan) Plan {
	return func(o Observed, p Plan) Plan {
		if o.Journal.Phase != phase {
			return p
		}
		return wrong(o, p)
	}
}

func onlyFor(op Op, wrong func(*model, Step) []func()) func(*model, Step) []func() {
	return func(m *model, s Step) []func() {
		if s.Op != op {
			return nil
		}
		return wrong(m, s)
	}
}

// copied changes what copies are made as.
func copied(change func(*unstructured.Unstructured)) func(*model, Step) []func() {
	return onlyFor(OpCreate, func(m *model, s Step) []func() {
		s.Copy = s.Copy.DeepCopy()
		change(s.Copy)
		return m.writes(s)
	})
}

func withoutDependent(name string) func(*Observed) {
	return func(o *Observed) {
		o.Dependents = slices.DeleteFunc(o.Dependents, func(d Dependent) bool { return d.Name == name })
	}
}

// backwards releases owners before what they own.
func backwards(objs []Object) []Step {
	owners := map[string]bool{}
	for _, o := range objs {
		for _, r := range o.GetOwnerReferences() {
			owners[string(r.UID)] = true
		}
	}
	for _, o := range objs {
		if owners[string(o.GetUID())] {
			return []Step{{Op: OpRelease, Object: o}}
		}
	}
	return []Step{{Op: OpRelease, Object: objs[0]}}
}

// mutations are named after what the program does wrong.
var mutations = map[string]mutation{
	// Those of the specification.
	"it overlooks the HostedControlPlane when it re-points": {observe: withoutDependent("hcp")},
	"it deletes an old object before its finalizers are off": {writes: onlyFor(OpRelease, func(m *model, s Step) []func() {
		w := m.writes(s)
		return []func(){w[1], w[0]}
	})},
	"it notes the replicas in a write of its own, after it scaled": {writes: onlyFor(OpScale, func(m *model, s Step) []func() {
		p := m.program(s.Program.Name)
		return []func(){func() { p.Replicas, p.Settled = s.Replicas, false }, func() { p.Before = ptr.To(p.Replicas) }}
	})},
	"it unpauses copies before the commit": {plan: phased(Commit, func(o Observed, p Plan) Plan {
		unpause := o.unpause(o.To, "")
		unpause.Next, unpause.Ordered, unpause.Steps = p.Next, true, append(unpause.Steps, p.Steps...)
		return unpause
	})},
	"it releases owners first": {plan: phased(Release, func(o Observed, p Plan) Plan {
		if len(p.Steps) > 0 && p.Steps[0].Op == OpRelease {
			p.Steps = backwards(o.From)
		}
		return p
	})},
	"it deletes copies with finalizers while it takes a move back": {plan: phased(RollBack, func(o Observed, p Plan) Plan {
		if len(o.To) == 0 {
			return p
		}
		return o.drop(o.To)
	}), writes: onlyFor(OpRelease, func(m *model, s Step) []func() {
		w := m.writes(s)
		if m.journal.Phase != RollBack {
			return w
		}
		return []func(){w[1], w[0]}
	})},
	"it commits in two patches": {writes: onlyFor(OpCommit, func(m *model, s Step) []func() {
		return []func(){func() { note(m.hc.Annotations, s.Private) }, m.writes(s)[0]}
	})},

	// Ours.
	"it overlooks a pod when it re-points": {observe: withoutDependent("pod-a")},
	"it adds an owner and leaves the old one there": {writes: onlyFor(OpRepoint, func(m *model, s Step) []func() {
		d := m.dependents[s.Dependent.Name]
		return []func(){func() { d.Owners = append(s.Owners, d.Owners...) }}
	})},
	"it re-points with a moment without an owner": {writes: onlyFor(OpRepoint, func(m *model, s Step) []func() {
		d := m.dependents[s.Dependent.Name]
		return []func(){func() { d.Owners = nil }, m.writes(s)[0]}
	})},
	"it does not wait until the operator lets go": {observe: func(o *Observed) { o.HC.Annotations[hyperv1.PrivateCAPIMigrationAckAnnotation] = o.Journal.Lock }},
	"it takes replicas 0 for the end of pods": {observe: func(o *Observed) {
		for i := range o.Programs {
			if p := &o.Programs[i]; p.Replicas == 0 {
				p.Pods, p.Settled = 0, true
			}
		}
	}},
	"it overlooks Karpenter": {observe: func(o *Observed) {
		o.Programs = slices.DeleteFunc(slices.Clone(o.Programs), func(p Program) bool { return p.Name == karpenter })
	}},
	"it leaves the manager's lease":       {observe: func(o *Observed) { o.Lease = nil }},
	"it makes copies without finalizers":  {writes: copied(func(u *unstructured.Unstructured) { u.SetFinalizers(nil) }), plan: unverified},
	"it makes copies that are not paused": {writes: copied(func(u *unstructured.Unstructured) { without(u, clusterv1.PausedAnnotation) }), plan: unverified},
	"it makes copies with the old owners": {writes: onlyFor(OpCreate, func(m *model, s Step) []func() {
		s.Copy = s.Copy.DeepCopy()
		s.Copy.SetOwnerReferences(s.Object.GetOwnerReferences())
		return m.writes(s)
	}), plan: unverified},
	"it compares nothing":                  {plan: unverified},
	"it takes a half copy for a whole one": {observe: func(o *Observed) { wholly(o.To) }, plan: unverified},
	"it pauses nothing":                    {plan: phased(Pause, func(_ Observed, _ Plan) Plan { return Plan{Next: ScaleDown} }), observe: func(o *Observed) { pausedAlready(o) }},
	"it does not note where objects are": {plan: phased(Switch, func(_ Observed, p Plan) Plan {
		p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return s.Op == OpNoteHCP })
		return p
	})},
	"it starts programs before the commit": {plan: phased(Switch, func(_ Observed, p Plan) Plan {
		for i := range p.Steps {
			p.Steps[i].Awake = true
		}
		return p
	}), observe: func(o *Observed) { asleep(o) }},
	"it starts programs for the old storage": {writes: onlyFor(OpDeploy, func(m *model, s Step) []func() { s.Private = m.start; return m.writes(s) })},
	"it goes back after the commit":          {plan: phased(Available, func(_ Observed, _ Plan) Plan { return Plan{Failure: &Failure{ReasonInternal, "too slow"}} })},
	"it unpauses everything at once": {plan: phased(Unpause, func(o Observed, p Plan) Plan {
		p.Steps = nil
		for _, obj := range o.To {
			if obj.held() {
				p.Steps = append([]Step{{Op: OpUnpause, Object: obj}}, p.Steps...)
			}
		}
		return p
	})},
	"it unlocks before old objects are gone": {plan: phased(Release, func(_ Observed, _ Plan) Plan { return Plan{Next: Finish} })},
	"it releases old objects first":          {plan: phased(ScaleUp, func(o Observed, p Plan) Plan { p.Steps = append(o.drop(o.From).Steps, p.Steps...); return p }), observe: withoutDependent("hcp")},
	"it forgets to start programs again": {plan: phased(RollBack, func(o Observed, p Plan) Plan {
		if len(p.Steps) > 0 && slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Op == OpRestore }) {
			for i := range p.Steps {
				p.Steps[i].Replicas = 0
			}
		}
		return p
	})},
	"it leaves copies when it takes a move back": {plan: phased(RollBack, func(_ Observed, p Plan) Plan { return skip(p, OpRelease, RolledBack) })},
	"it leaves owners when it takes a move back": {plan: phased(RollBack, func(o Observed, p Plan) Plan {
		if len(p.Steps) > 0 && p.Steps[0].Op == OpRepoint {
			return o.drop(o.To)
		}
		return p
	})},
	"it leaves rights when it takes a move back": {plan: phased(RollBack, func(_ Observed, p Plan) Plan {
		p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return s.Op == OpDeploy || s.Op == OpNoteHCP })
		if len(p.Steps) == 0 && p.Next == "" && p.Wait == "" {
			p.Next = RolledBack
		}
		return p
	})},
	"it leaves pauses when it takes a move back": {plan: phased(RollBack, func(_ Observed, p Plan) Plan { return skip(p, OpUnpause, RolledBack) })},
}

// unverified goes on whatever a comparison says.
func unverified(o Observed, p Plan) Plan {
	if p.Failure == nil || p.Failure.Reason != ReasonMismatch {
		return p
	}
	if o.Journal.Phase == Verify {
		return Plan{Next: Switch}
	}
	return Plan{Steps: []Step{{Op: OpCommit, Private: o.Journal.Direction.Private()}}, Next: ScaleUp}
}

func without(u *unstructured.Unstructured, key string) {
	a := u.GetAnnotations()
	delete(a, key)
	u.SetAnnotations(a)
}

func wholly(objs []Object) {
	for _, o := range objs {
		if a := o.GetAnnotations(); a[copyAnnotation] == copyCreated {
			a[copyAnnotation] = copyWhole
			o.SetAnnotations(a)
		}
	}
}

// pausedAlready overlooks in the phases after the first that something is not paused.
func pausedAlready(o *Observed) {
	if o.Journal.Phase != ScaleDown {
		return
	}
	for _, obj := range o.From {
		a := obj.GetAnnotations()
		if a == nil {
			a = map[string]string{}
		}
		a[clusterv1.PausedAnnotation] = pausedValue
		obj.SetAnnotations(a)
	}
}

// asleep overlooks before the commit that programs run.
func asleep(o *Observed) {
	if o.Journal.Phase != Commit {
		return
	}
	for i := range o.Programs {
		o.Programs[i].Replicas, o.Programs[i].Pods = 0, 0
	}
}

// skip leaves out all steps of a plan that has those of an operation, and goes on.
func skip(p Plan, op Op, next Phase) Plan {
	if slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Op == op }) {
		return Plan{Next: next}
	}
	return p
}

// notice looks for a run in which the model notices a mistake: undisturbed ones, then those with one crash, then storms.
func notice(wrong *mutation) error {
	world := func(reverse bool) *model {
		m := newModel(reverse)
		m.broken = wrong
		return m
	}
	for _, reverse := range []bool{false, true} {
		if err := world(reverse).calm(); err != nil {
			return fmt.Errorf("undisturbed: %w", err)
		}
		if err := crashes(func() *model { return world(reverse) }, func(*model) {}); err != nil {
			return fmt.Errorf("a crash: %w", err)
		}
	}
	const storms = 300 // the rarest needs half of them
	for seed := range uint64(storms) {
		random := rand.New(rand.NewPCG(seed, 1))
		m := world(seed%2 == 1)
		if err := m.storm(func(_ string, n int) int { return random.IntN(n) }); err != nil {
			return fmt.Errorf("storm %d: %w", seed, err)
		}
	}
	return nil
}

func TestModelNoticesMistakes(t *testing.T) {
	for name, wrong := range mutations {
		t.Run("When "+name+" the model should notice", func(t *testing.T) {
			err := notice(&wrong)
			if err == nil {
				t.Fatal("every promise seems to be kept")
			}
			first, _, _ := strings.Cut(err.Error(), "\n")
			t.Logf("%.200s", first)
		})
	}
	t.Run("When nothing is wrong the same runs should find nothing", func(t *testing.T) {
		if err := notice(&mutation{}); err != nil {
			t.Fatal(err)
		}
	})
}
