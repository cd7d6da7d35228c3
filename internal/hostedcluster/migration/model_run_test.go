package migration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// check are the promises that hold at every moment.
func (m *model) check() error {
	m.collect()
	for _, promise := range []func() error{m.keepsObjects, m.isOfOneStorage, m.actsAlone, m.deletesNothing, m.hasOneController, m.unpausesInOrder} {
		if err := promise(); err != nil {
			return fmt.Errorf("phase %s: %w", m.journal.Phase, err)
		}
	}
	return nil
}

func (m *model) private() bool { return m.hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true" }

// keepsObjects: what counts is where the hosted cluster says, whole, and what users wrote last.
func (m *model) keepsObjects() error {
	if len(m.removed) > 0 {
		return fmt.Errorf("the garbage collector takes %v", m.removed)
	}
	for _, id := range m.ids {
		it := m.objects[m.private()][id]
		if it == nil {
			return fmt.Errorf("%s is not where the hosted cluster says", id)
		}
		if o := (Object{Unstructured: it}); o.isCopy() && !o.whole() {
			return fmt.Errorf("%s is not whole, and the hosted cluster says that it is the one", id)
		}
		if len(it.GetFinalizers()) == 0 {
			return fmt.Errorf("%s lost its finalizers", id)
		}
		if fmt.Sprint(it.Object["spec"]) != fmt.Sprint(m.specs[id]) {
			return fmt.Errorf("what a user wrote into %s is lost: %v", id, it.Object["spec"])
		}
	}
	return nil
}

func (m *model) isOfOneStorage() error {
	if m.private() == (m.hc.Annotations[hyperv1.HostedClusterScopeAnnotation] == hyperv1.LegacyScope) {
		return fmt.Errorf("the hosted cluster is of no storage, or of both: %v", m.hc.Annotations)
	}
	return nil
}

// actsAlone: no program acts on an object of which there are two, but on the one that counts, and none runs while there are copies to be made.
func (m *model) actsAlone() error {
	phase := m.journal.Phase
	moving := phase.Number() > ScaleDown.Number() && phase.Number() < ScaleUp.Number()
	if m.locked() && m.hc.Annotations[hyperv1.PrivateCAPIMigrationAckAnnotation] != m.lock && phase.Number() > Quiesce.Number() {
		return errors.New("the operator has not let go")
	}
	if moving && m.lease {
		return errors.New("the next manager would wait for a lease of nobody's")
	}
	controllers := 0
	for _, p := range m.programs {
		if p.Pods > 0 && moving && !m.private() == !m.journal.Direction.Private() {
			return fmt.Errorf("%s runs", p.Name)
		}
		if p.Pods > 0 && p.Name != programNames[0] {
			controllers++
		}
	}
	for _, id := range m.ids {
		it, other := m.objects[m.private()][id], m.objects[!m.private()][id]
		if other == nil && phase.committed() {
			continue // it was made since, and is not moved
		}
		if phase.Number() > ScaleDown.Number() && phase.Number() < Unpause.Number() && !m.anew && !(Object{Unstructured: it}).held() {
			return fmt.Errorf("%s is unpaused in the middle of its move", id)
		}
		if other == nil || controllers == 0 {
			continue
		}
		if !(Object{Unstructured: other}).held() {
			return fmt.Errorf("%s is unpaused where it does not count while programs run", id)
		}
		if m.speaks != m.private() {
			return errors.New("programs run for the other storage than the hosted cluster has")
		}
	}
	return nil
}

func (o Object) held() bool {
	_, paused := o.paused()
	return paused
}

// deletesNothing: what is being deleted and has finalizers would be heeded by a provider, which ends a machine.
func (m *model) deletesNothing() error {
	for _, objs := range m.objects {
		for id, u := range objs {
			if u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) > 0 {
				return fmt.Errorf("%s of %s is being deleted and has finalizers", id, u.GroupVersionKind().Group)
			}
		}
	}
	return nil
}

func (m *model) hasOneController() error {
	for name, d := range m.dependents {
		n := 0
		for _, r := range d.Owners {
			if r.Controller != nil && *r.Controller {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("%s has %d controllers", name, n)
		}
	}
	return nil
}

// unpausesInOrder: what could remove machines works last.
func (m *model) unpausesInOrder() error {
	if m.journal.Phase != Unpause || m.anew {
		return nil
	}
	for _, late := range m.ids {
		for _, early := range m.ids {
			is := func(id ID) bool { return Object{Unstructured: m.objects[m.private()][id]}.held() }
			if m.objects[!m.private()][late] == nil {
				continue // it was made since the commit
			}
			if rank(late) > rank(early) && !is(late) && is(early) {
				return fmt.Errorf("%s works before %s does", late, early)
			}
		}
	}
	return nil
}

// end is what holds when a move is over.
func (m *model) end() error {
	private := m.private()
	switch {
	case m.locked():
		return fmt.Errorf("it does not end: phase %s, %+v", m.journal.Phase, m.plan())
	case (private != m.start) != (m.journal.Phase == Completed):
		return fmt.Errorf("private is %t and the phase %s", private, m.journal.Phase)
	case len(m.objects[!private]) > 0:
		return fmt.Errorf("there are objects left on the other side: %d", len(m.objects[!private]))
	case (m.hcp.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true") != private || m.speaks != private:
		return errors.New("the control plane is for the other storage")
	}
	for _, id := range m.ids {
		o := Object{Unstructured: m.objects[private][id]}
		if o.held() || o.isCopy() {
			return fmt.Errorf("%s has %v", id, o.GetAnnotations())
		}
	}
	for _, p := range m.programs {
		if p.Replicas != 1 || p.Before != nil {
			return fmt.Errorf("%s has %d replicas, and had %v", p.Name, p.Replicas, p.Before)
		}
	}
	return nil
}

// finish lets the move go on undisturbed until it is over.
func (m *model) finish() error {
	for range 200 {
		m.settle()
		if !m.locked() {
			break
		}
		m.turn(-1)
		if err := m.check(); err != nil {
			return err
		}
	}
	m.settle()
	return errors.Join(m.check(), m.end())
}

// calm is a move that nobody disturbs.
func (m *model) calm() error {
	m.acknowledge()
	if err := m.finish(); err != nil {
		return err
	}
	if m.journal.Phase != Completed {
		return fmt.Errorf("it ended as %s: %s", m.journal.Phase, m.journal.Message)
	}
	return nil
}

// ignored is a move whose lock nobody acknowledges.
func (m *model) ignored() error {
	for range 10 {
		m.settle()
		if m.locked() {
			m.turn(-1)
		}
		if err := m.check(); err != nil {
			return err
		}
		m.now = m.now.Add(time.Minute)
	}
	if m.journal.Phase != RolledBack || m.journal.Failure != ReasonQuiesce {
		return fmt.Errorf("phase %s, %s", m.journal.Phase, m.journal.Failure)
	}
	return m.end()
}

// undeployed is a move whose programs can't be deployed for the storage that it goes to.
func (m *model) undeployed() error {
	m.acknowledge()
	for range 100 {
		m.settle()
		if m.locked() {
			m.turn(-1)
		}
		if err := m.check(); err != nil {
			return err
		}
		m.now = m.now.Add(10 * time.Second)
	}
	if m.journal.Phase != RolledBack || m.journal.Failure != ReasonWorkload {
		return fmt.Errorf("phase %s, %s", m.journal.Phase, m.journal.Failure)
	}
	return m.end()
}

// edit is a user's change of an object that counts.
func (m *model) edit(id ID) {
	spec := map[string]any{"edited": int64(m.uids)}
	m.objects[m.private()][id].Object["spec"], m.specs[id] = spec, spec
}

// storm is a move in which the process dies and others act at times that choose decides.
func (m *model) storm(choose chooser) error {
	for range choose("turns", 61) {
		switch choose("who", 12) {
		case 0:
			m.acknowledge()
		case 1:
			m.settle()
		case 2:
			m.now = m.now.Add(time.Duration(choose("seconds", 401)) * time.Second)
		case 3:
			if choose("delete", 10) == 0 {
				m.hc.DeletionTimestamp = ptr.To(metav1.NewTime(m.now))
			}
		case 4:
			switch choose("edit", 5) {
			case 0:
				m.edit(m.ids[choose("object", len(m.ids))])
			case 1:
				m.provision()
			}
		case 5:
			if m.locked() {
				m.turn(choose("writes before the crash", 13))
			}
		default:
			if m.locked() {
				m.turn(-1)
			}
		}
		if err := m.check(); err != nil {
			return err
		}
	}
	m.acknowledge()
	return m.finish()
}

// strangers are what others do at once.
var strangers = map[string]func(*model){
	"nobody acts":                        func(*model) {},
	"the Deployments' controller acts":   (*model).settle,
	"a user edits a machine":             func(m *model) { m.edit(m.ids[len(m.ids)-2]) },
	"a user deletes the hosted cluster":  func(m *model) { m.hc.DeletionTimestamp = ptr.To(metav1.NewTime(m.now)) },
	"Karpenter makes a machine":          (*model).provision,
	"half an hour passes":                func(m *model) { m.now = m.now.Add(30 * time.Minute) },
	"a user asks for the way back":       func(m *model) { m.hc.Annotations[hyperv1.PrivateCAPIRollbackAnnotation] = "true" },
	"the journal is lost, and made anew": (*model).forget,
}

// forget is what becomes of a journal that somebody deleted: the controller begins another one under another lock, or takes the lock off that was all
// that is left of the move.
func (m *model) forget() {
	switch {
	case !m.locked() || m.journal.Phase.Over():
		return
	case !m.observe().begun() && m.private() != m.start:
		m.journal = m.journal.at(Completed, m.now)
		delete(m.hc.Annotations, hyperv1.PrivateCAPIMigrationInProgressAnnotation)
		return
	}
	m.anew, m.lock = true, "lock-"+string(m.uid())
	m.hc.Annotations[hyperv1.PrivateCAPIMigrationLockAnnotation] = m.lock
	m.journal = Journal{SchemaVersion: journalSchema, Lock: m.lock, Direction: m.journal.Direction, Phase: Quiesce, Started: m.now, PhaseStarted: m.now}
}

// crashOnce dies before write number at of the move, counted from 0, and then somebody acts; false: there are not that many.
func (m *model) crashOnce(at int, act func(*model)) (bool, error) {
	m.acknowledge()
	for range 200 {
		m.settle()
		if !m.locked() {
			return false, nil
		}
		n := m.pending()
		if at >= n {
			at -= n
			m.turn(-1)
			continue
		}
		m.turn(at)
		act(m)
		if err := m.check(); err != nil {
			return true, err
		}
		m.acknowledge()
		return true, m.finish()
	}
	return false, errors.New("it does not end")
}

// crashes tries crashOnce at each write.
func crashes(world func() *model, act func(*model)) error {
	for at := 0; ; at++ {
		fired, err := world().crashOnce(at, act)
		if err != nil {
			return fmt.Errorf("write %d: %w", at, err)
		}
		if !fired {
			return nil
		}
	}
}

func TestModel(t *testing.T) {
	t.Run("When it crashes anywhere and others act in between it should end committed or taken back, and lose nothing on the way", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			choose := func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }
			if err := newModel(choose("reverse", 2) == 1).storm(choose); err != nil {
				t.Fatal(err)
			}
		})
	})
	for _, reverse := range []bool{false, true} {
		t.Run(fmt.Sprintf("When nobody disturbs it it should be committed (back: %t)", reverse), func(t *testing.T) {
			if err := newModel(reverse).calm(); err != nil {
				t.Fatal(err)
			}
		})
		for _, half := range []bool{false, true} {
			t.Run(fmt.Sprintf("When programs can't be deployed for what it goes to it should be taken back (back: %t, after their Roles were written: %t)", reverse, half), func(t *testing.T) {
				m := newModel(reverse)
				m.undeployable, m.half = true, half
				if err := m.undeployed(); err != nil {
					t.Fatal(err)
				}
			})
		}
		t.Run(fmt.Sprintf("When the operator never lets go it should be taken back, and keep no other hosted cluster waiting (back: %t)", reverse), func(t *testing.T) {
			if err := newModel(reverse).ignored(); err != nil {
				t.Fatal(err)
			}
		})
		t.Run(fmt.Sprintf("When it crashes once after any write, and anybody acts then, it should keep every promise (back: %t)", reverse), func(t *testing.T) {
			for name, act := range strangers {
				if err := crashes(func() *model { return newModel(reverse) }, act); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}
