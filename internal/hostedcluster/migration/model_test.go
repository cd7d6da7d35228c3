package migration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
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
	// speaks is the kind of storage that programs are deployed for, makes the one in which Karpenter makes machines.
	speaks  bool
	makes   bool
	lease   bool
	lock    string
	uids    int
	start   bool // private at the start
	ids     []ID
	removed []string // what a garbage collector or a controller took away that nobody asked for
	// specs are what users wrote last.
	specs map[ID]any
	// anew: the journal was lost, so that phases come twice.
	anew bool
	// undeployable: the manager and the provider can't be deployed for the storage that it goes to, half: after their Roles were written.
	undeployable, half bool
	// broken is what is wrong with the program under test; nil: nothing.
	broken *mutation
}

// chooser decides what happens next: a number from 0 to n-1.
type chooser func(label string, n int) int

func (m *model) uid() types.UID { m.uids++; return types.UID(fmt.Sprint("uid-", m.uids)) }

func newModel(reverse bool) *model {
	m := &model{now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), start: reverse, speaks: reverse, makes: reverse, lock: "lock-1", lease: true,
		objects: map[bool]map[ID]*unstructured.Unstructured{false: {}, true: {}}, dependents: map[string]*Dependent{}, specs: map[ID]any{}}
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
	for _, name := range append(slices.Clone(programNames[:4]), karpenter) {
		m.programs = append(m.programs, Program{Name: name, UID: types.UID(name), Replicas: 1, Pods: 1, Available: true})
	}
	m.program(karpenter).Rights = []string{m.group("", m.makes)}
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
	return m.place(m.start, prefix, kind, name, owner)
}

func (m *model) place(private bool, prefix, kind, name string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"name": name}, "status": map[string]any{"observedGeneration": int64(3)}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: m.group(prefix, private), Version: "v1beta2", Kind: kind})
	u.SetName(name)
	u.SetUID(m.uid())
	u.SetGeneration(3)
	u.SetFinalizers([]string{"x.cluster.x-k8s.io"})
	if owner != nil {
		u.SetOwnerReferences(m.owner(owner))
	}
	id := Object{Unstructured: u}.ID()
	m.objects[private][id] = u
	m.ids = append(m.ids, id)
	m.specs[id] = u.Object["spec"]
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

// plan is what the program decides, with whatever is wrong with it.
func (m *model) plan() Plan {
	o := m.observe()
	if m.broken != nil && m.broken.observe != nil {
		m.broken.observe(&o)
	}
	p := planFor(o)
	if m.broken != nil && m.broken.plan != nil {
		p = m.broken.plan(o, p)
	}
	return p
}

// remove is what an API server does with a deletion.
func (m *model) remove(private bool, id ID) {
	switch u := m.objects[private][id]; {
	case u == nil:
	case len(u.GetFinalizers()) == 0:
		delete(m.objects[private], id)
	default:
		u.SetDeletionTimestamp(ptr.To(metav1.NewTime(m.now)))
	}
}

// finalize takes an object's finalizers off.
func (m *model) finalize(private bool, id ID) {
	u := m.objects[private][id]
	if u == nil {
		return
	}
	if u.SetFinalizers(nil); u.GetDeletionTimestamp() != nil {
		delete(m.objects[private], id)
	}
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
		return []func(){func() { m.finalize(private, s.Object.ID()) }, func() { m.remove(private, s.Object.ID()) }}
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

// writesOf are those of a step, with whatever is wrong with the program.
func (m *model) writesOf(s Step) []func() {
	if m.broken != nil && m.broken.writes != nil {
		if instead := m.broken.writes(m, s); instead != nil {
			return instead
		}
	}
	return m.writes(s)
}

// pending is how many writes the next turn makes, and the note of its end.
func (m *model) pending() int {
	n := 1
	for _, s := range m.plan().Steps {
		n += len(m.writesOf(s))
	}
	return n
}

// turn makes the next steps, as many writes as there are before the process dies; below 0 it doesn't.
func (m *model) turn(most int) {
	p := m.plan()
	var writes []func()
	var refused error
	for _, s := range p.Steps {
		if m.undeployable && s.Op == OpDeploy && s.Private != m.start {
			if refused = errors.New("the release can't be read"); m.half {
				writes = append(writes, m.writesOf(s)...)
			}
			break
		}
		writes = append(writes, m.writesOf(s)...)
	}
	for i, w := range writes {
		if most >= 0 && i >= most {
			return
		}
		w()
	}
	if refused != nil {
		p.Failure, p.Next = m.journal.failed(refused, m.now), ""
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
	runs := cpo.Pods > 0 && cpo.Replicas > 0
	if k := m.program(karpenter); runs {
		m.makes = m.hcp.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true"
		k.Rights = []string{m.group("", m.makes)}
	}
	for i := range m.programs {
		p := &m.programs[i]
		if !p.ours() && runs {
			p.Replicas = 1
		}
		p.Pods, p.Settled, p.Available = int(p.Replicas), p.Replicas == 0, p.Replicas > 0
	}
}

// provision is what Karpenter does while it runs: it makes a machine, whatever is paused.
func (m *model) provision() {
	if m.program(karpenter).Pods > 0 {
		m.place(m.makes, "", "Machine", fmt.Sprint("k-", m.uids), nil)
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
