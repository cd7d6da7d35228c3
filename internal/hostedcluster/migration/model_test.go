package migration

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
)

// model is a hosted cluster on an API server that exists in memory alone: every write of a plan is a transition of its own, after which the
// process may die, and between which others act.
type model struct {
	now        time.Time
	hc         *hyperv1.HostedCluster
	hcp        *hyperv1.HostedControlPlane
	journal    Journal
	objects    map[bool]map[ID]*unstructured.Unstructured // by private or not
	dependents map[string]*Dependent
	programs   []Program
	// speaks is the kind of storage that programs are deployed for.
	speaks  bool
	lease   bool
	lock    string
	uids    int
	start   bool // private at the start
	ids     []ID
	removed []string // what a garbage collector or a controller took away that nobody asked for
}

func (m *model) uid() types.UID { m.uids++; return types.UID(fmt.Sprint("uid-", m.uids)) }

func newModel(reverse bool) *model {
	m := &model{now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), start: reverse, speaks: reverse, lock: "lock-1", lease: true,
		objects: map[bool]map[ID]*unstructured.Unstructured{false: {}, true: {}}, dependents: map[string]*Dependent{}}
	annotations := map[string]string{hyperv1.PrivateCAPIMigrationInProgressAnnotation: "true", hyperv1.PrivateCAPIMigrationLockAnnotation: m.lock}
	direction := Forward
	if reverse {
		direction = Reverse
		annotations[hyperv1.PrivateCAPITypesAnnotation], annotations[hyperv1.PrivateCAPIRollbackAnnotation] = "true", "true"
	} else {
		annotations[hyperv1.HostedClusterScopeAnnotation] = hyperv1.LegacyScope
	}
	m.hc = &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", Annotations: annotations}}
	m.hcp = &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
	if reverse {
		m.hcp.Annotations[hyperv1.PrivateCAPITypesAnnotation] = "true"
	}
	m.journal = Journal{SchemaVersion: journalSchema, Lock: m.lock, Direction: direction, Phase: Quiesce, Started: m.now, PhaseStarted: m.now}
	cluster := m.add("", "Cluster", "demo", nil)
	m.depend("hcp", cluster)
	set := m.add("", "MachineSet", "set", m.add("", "MachineDeployment", "md", cluster))
	m.add("", "MachineHealthCheck", "mhc", cluster)
	for _, name := range []string{"a", "b"} {
		m.depend("pod-"+name, m.add("infrastructure.", "LocalMachine", name, m.add("", "Machine", name, set)))
	}
	for _, name := range programNames[:4] {
		m.programs = append(m.programs, Program{Name: name, UID: types.UID(name), Replicas: 1, Pods: 1, Available: true})
	}
	return m
}

func (m *model) group(prefix string, private bool) string {
	if private {
		return prefix + translate.Private
	}
	return prefix + translate.Standard
}

func (m *model) owner(of *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: of.GetAPIVersion(), Kind: of.GetKind(), Name: of.GetName(), UID: of.GetUID(), Controller: ptr.To(true)}}
}

func (m *model) add(prefix, kind, name string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"name": name}, "status": map[string]any{"observedGeneration": int64(3)}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: m.group(prefix, m.start), Version: "v1beta2", Kind: kind})
	u.SetName(name)
	u.SetUID(m.uid())
	u.SetGeneration(3)
	u.SetFinalizers([]string{"x.cluster.x-k8s.io"})
	if owner != nil {
		u.SetOwnerReferences(m.owner(owner))
	}
	id := Object{Unstructured: u}.ID()
	m.objects[m.start][id] = u
	m.ids = append(m.ids, id)
	return u
}

func (m *model) depend(name string, owner *unstructured.Unstructured) {
	m.dependents[name] = &Dependent{Name: name, UID: m.uid(), Owners: m.owner(owner)}
}

func (m *model) list(private bool) (out []Object) {
	for _, id := range m.ids {
		if u := m.objects[private][id]; u != nil {
			out = append(out, Object{Unstructured: u.DeepCopy()})
		}
	}
	return out
}

func (m *model) observe() Observed {
	j := m.journal
	o := Observed{Now: m.now, HC: m.hc.DeepCopy(), HCP: m.hcp.DeepCopy(), Journal: &j, Programs: slices.Clone(m.programs), From: m.list(!j.Direction.Private()), To: m.list(j.Direction.Private())}
	for _, name := range slices.Sorted(maps.Keys(m.dependents)) {
		o.Dependents = append(o.Dependents, *m.dependents[name])
	}
	o.Rights = []string{m.group("", m.speaks)}
	if m.lease {
		o.Lease = &metav1.ObjectMeta{}
	}
	return o
}

func (m *model) program(name string) *Program {
	i := slices.IndexFunc(m.programs, func(p Program) bool { return p.Name == name })
	return &m.programs[i]
}

// writes are the transitions that a step is made of.
func (m *model) writes(s Step) []func() {
	private := translate.IsPrivate(m.groupOf(s))
	get := func() *unstructured.Unstructured { return m.objects[private][s.Object.ID()] }
	set := func(key, value string) func() {
		return func() {
			if u := get(); u != nil {
				a := u.GetAnnotations()
				if a == nil {
					a = map[string]string{}
				}
				if a[key] = value; value == "" {
					delete(a, key)
				}
				u.SetAnnotations(a)
			}
		}
	}
	complete := func() {
		u := m.objects[!private][s.Object.ID()]
		u.Object["status"] = map[string]any{"observedGeneration": int64(1)}
		a := u.GetAnnotations()
		a[copyAnnotation] = copyWhole
		u.SetAnnotations(a)
	}
	switch s.Op {
	case OpPause:
		return []func(){set(clusterv1.PausedAnnotation, pausedValue)}
	case OpUnpause:
		return []func(){func() { set(clusterv1.PausedAnnotation, "")(); set(copyAnnotation, "")() }}
	case OpScale, OpRestore:
		return []func(){func() {
			p := m.program(s.Program.Name)
			if s.Op == OpRestore {
				p.Before = nil
			} else if p.Before == nil {
				p.Before = ptr.To(p.Replicas)
			}
			p.Replicas, p.Settled, p.Available = s.Replicas, false, false
		}}
	case OpDeleteLease:
		return []func(){func() { m.lease = false }}
	case OpCreate:
		return []func(){func() {
			u := s.Copy.DeepCopy()
			delete(u.Object, "status")
			u.SetUID(m.uid())
			u.SetGeneration(1)
			m.objects[!private][s.Object.ID()] = u
		}, complete}
	case OpComplete:
		return []func(){complete}
	case OpRepoint:
		return []func(){func() { m.dependents[s.Dependent.Name].Owners = s.Owners }}
	case OpNoteHCP:
		return []func(){func() { note(m.hcp.Annotations, s.Private) }}
	case OpDeploy:
		return []func(){func() {
			m.speaks = s.Private
			for i := range m.programs {
				if p := &m.programs[i]; s.Awake && p.ours() {
					p.Replicas, p.Settled = 1, false
				}
			}
		}}
	case OpCommit:
		return []func(){func() {
			note(m.hc.Annotations, s.Private)
			delete(m.hc.Annotations, hyperv1.HostedClusterScopeAnnotation)
			if !s.Private {
				m.hc.Annotations[hyperv1.HostedClusterScopeAnnotation] = hyperv1.LegacyScope
			}
		}}
	case OpRelease:
		return []func(){
			func() {
				if u := get(); u != nil {
					u.SetFinalizers(nil)
				}
			},
			func() { delete(m.objects[private], s.Object.ID()) },
		}
	case OpUnlock:
		return []func(){func() { delete(m.hc.Annotations, hyperv1.PrivateCAPIMigrationInProgressAnnotation) }}
	}
	return nil
}

func note(a map[string]string, private bool) {
	if delete(a, hyperv1.PrivateCAPITypesAnnotation); private {
		a[hyperv1.PrivateCAPITypesAnnotation] = "true"
	}
}

func (m *model) groupOf(s Step) string {
	if s.Object.Unstructured == nil {
		return ""
	}
	return s.Object.GroupVersionKind().Group
}

func (m *model) locked() bool {
	return m.hc.Annotations[hyperv1.PrivateCAPIMigrationInProgressAnnotation] == "true"
}

// turn makes the next steps, as many writes as there are before the process dies; below 0 it doesn't.
func (m *model) turn(most int) {
	p := planFor(m.observe())
	var writes []func()
	for _, s := range p.Steps {
		writes = append(writes, m.writes(s)...)
	}
	if most >= 0 && most < len(writes) {
		for _, w := range writes[:most] {
			w()
		}
		return
	}
	for _, w := range writes {
		w()
	}
	switch {
	case most >= 0:
	case p.Failure != nil:
		m.journal = m.journal.at(RollBack, m.now)
		m.journal.Failure, m.journal.Message = p.Failure.Reason, p.Failure.Message
	case p.Next != "":
		m.journal = m.journal.at(p.Next, m.now)
	}
}

// settle is what the Deployments' controller and the control-plane-operator do.
func (m *model) settle() {
	cpo := m.program(programNames[0])
	for i := range m.programs {
		p := &m.programs[i]
		if !p.ours() && cpo.Pods > 0 && cpo.Replicas > 0 {
			p.Replicas = 1
		}
		p.Pods, p.Settled, p.Available = int(p.Replicas), p.Replicas == 0, p.Replicas > 0
	}
}

func (m *model) acknowledge() { m.hc.Annotations[hyperv1.PrivateCAPIMigrationAckAnnotation] = m.lock }

// collect is a pass of a garbage collector.
func (m *model) collect() {
	exists := map[types.UID]bool{}
	for _, objs := range m.objects {
		for _, u := range objs {
			exists[u.GetUID()] = true
		}
	}
	absent := func(owners []metav1.OwnerReference) bool {
		return len(owners) > 0 && !slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool { return exists[r.UID] })
	}
	for name, d := range m.dependents {
		if absent(d.Owners) {
			m.removed = append(m.removed, name)
		}
	}
	for private, objs := range m.objects {
		for id, u := range objs {
			if absent(u.GetOwnerReferences()) {
				m.removed = append(m.removed, fmt.Sprint(id, " private ", private))
			}
		}
	}
}

// check are the promises that hold at every moment.
func (m *model) check(t *rapid.T) {
	m.collect()
	if len(m.removed) > 0 {
		t.Fatalf("phase %s: the garbage collector takes %v", m.journal.Phase, m.removed)
	}
	private := m.hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true"
	scope := m.hc.Annotations[hyperv1.HostedClusterScopeAnnotation]
	if private == (scope == hyperv1.LegacyScope) {
		t.Fatalf("phase %s: the hosted cluster is of no storage, or of both: %v", m.journal.Phase, m.hc.Annotations)
	}
	controllers := 0
	for _, p := range m.programs {
		if p.Pods > 0 && !(p.Name == programNames[0]) {
			controllers++
		}
	}
	for _, id := range m.ids {
		it, other := m.objects[private][id], m.objects[!private][id]
		if it == nil {
			t.Fatalf("phase %s: %s is not where the hosted cluster says", m.journal.Phase, id)
		}
		o := Object{Unstructured: it}
		if o.isCopy() && !o.whole() {
			t.Fatalf("phase %s: %s is not whole, and the hosted cluster says that it is the one", m.journal.Phase, id)
		}
		if len(it.GetFinalizers()) == 0 {
			t.Fatalf("phase %s: %s lost its finalizers", m.journal.Phase, id)
		}
		if other == nil || controllers == 0 {
			continue
		}
		// Two representations, and somebody who acts: on the one that counts, and never on one that is not paused on the other side.
		if _, paused := (Object{Unstructured: other}).paused(); !paused {
			t.Fatalf("phase %s: %s is unpaused where it does not count while programs run", m.journal.Phase, id)
		}
		if m.speaks != private {
			t.Fatalf("phase %s: programs run for the other storage than the hosted cluster has", m.journal.Phase)
		}
	}
	for name, d := range m.dependents {
		n := 0
		for _, r := range d.Owners {
			if r.Controller != nil && *r.Controller {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("phase %s: %s has %d controllers", m.journal.Phase, name, n)
		}
	}
}

func TestModel(t *testing.T) {
	t.Run("When it crashes anywhere and others act in between it should end committed or taken back, and lose nothing on the way", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			m := newModel(rapid.Bool().Draw(t, "reverse"))
			for range rapid.IntRange(0, 60).Draw(t, "turns") {
				switch rapid.IntRange(0, 11).Draw(t, "who") {
				case 0:
					m.acknowledge()
				case 1:
					m.settle()
				case 2:
					m.now = m.now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second)
				case 3:
					if rapid.IntRange(0, 9).Draw(t, "delete") == 0 {
						m.hc.DeletionTimestamp = ptr.To(metav1.NewTime(m.now))
					}
				case 4: // a user edits an object that counts
					if rapid.IntRange(0, 4).Draw(t, "edit") == 0 {
						id := rapid.SampledFrom(m.ids).Draw(t, "object")
						m.objects[m.hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true"][id].Object["spec"] = map[string]any{"edited": int64(m.uids)}
					}
				case 5:
					if m.locked() {
						m.turn(rapid.IntRange(0, 12).Draw(t, "writes before the crash"))
					}
				default:
					if m.locked() {
						m.turn(-1)
					}
				}
				m.check(t)
			}
			m.acknowledge()
			for range 200 {
				m.settle()
				if !m.locked() {
					break
				}
				m.turn(-1)
				m.check(t)
			}
			m.settle()
			m.end(t)
		})
	})
	t.Run("When nobody disturbs it it should be committed", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			m := newModel(rapid.Bool().Draw(t, "reverse"))
			m.acknowledge()
			for range 100 {
				m.settle()
				if !m.locked() {
					break
				}
				m.turn(-1)
				m.check(t)
			}
			m.end(t)
			if m.journal.Phase != Completed {
				t.Fatalf("it ended as %s: %s", m.journal.Phase, m.journal.Message)
			}
		})
	})
}

// end is what holds when a move is over.
func (m *model) end(t *rapid.T) {
	private := m.hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true"
	switch {
	case m.locked():
		t.Fatalf("it does not end: phase %s, %+v", m.journal.Phase, planFor(m.observe()))
	case (private != m.start) != (m.journal.Phase == Completed):
		t.Fatalf("private is %t and the phase %s", private, m.journal.Phase)
	case len(m.objects[!private]) > 0:
		t.Fatalf("there are objects left on the other side: %d", len(m.objects[!private]))
	case (m.hcp.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true") != private || m.speaks != private:
		t.Fatalf("the control plane is for the other storage")
	}
	for _, id := range m.ids {
		o := Object{Unstructured: m.objects[private][id]}
		if _, paused := o.paused(); paused || o.isCopy() {
			t.Fatalf("%s has %v", id, o.GetAnnotations())
		}
	}
	for _, p := range m.programs {
		if p.Replicas != 1 || p.Before != nil {
			t.Fatalf("%s has %d replicas, and had %v", p.Name, p.Replicas, p.Before)
		}
	}
}
