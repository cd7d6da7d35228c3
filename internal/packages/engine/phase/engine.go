package phase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/owner"
	"hcp.internal/platform/internal/packages/engine/probe"
)

// Owner is what the objects of a phase belong to: an ObjectSet or an ObjectSetPhase.
type Owner struct {
	// Entry is written to objects; its Controller is ignored.
	Entry owner.Entry
	// Namespace of the owner, empty when it is cluster-scoped.
	Namespace string
	// Generation of the owner, for conditions that are mapped.
	Generation int64
	Revision   int64
	// Paused looks at objects and writes none.
	Paused bool
	// Content is what objects were made from, for an owner whose objects can change.
	Content string
	// Reported are the objects that the owner said it controls. One that is not among them, and that the watch doesn't know, is most likely not there.
	Reported []v1alpha1.ControlledObjectReference
	// Labels for every object, besides those of Rules.
	Labels map[string]string
	// Siblings are the UIDs of other revisions and of their ObjectSetPhases: objects are adopted from lower ones, and left to higher ones.
	Siblings map[types.UID]struct{}
	// Newer says whether somebody who is not among Siblings is a newer revision, or an ObjectSetPhase of one; nil when nobody can be. It is asked when an object
	// is looked at: one may have come since Siblings were read.
	Newer func(ctx context.Context, controller owner.Entry) (bool, error)
	// Superseded says whether there is a newer revision that may yet take objects; nil when that is not known. It is asked when a higher number has written an
	// object that nobody owns: a newer revision may merely have lost it, and would take it back. It is safe for concurrent use.
	Superseded func() (bool, error)
}

// Phase is a group of objects.
type Phase struct {
	Name    string
	Objects []v1alpha1.ObjectSetObject
	Probes  probe.Set
	// Conditions, if any, are taken from objects besides those that are mapped.
	Conditions func(*unstructured.Unstructured) []metav1.Condition
}

// looksAt says whether somebody wants to know more of an object than that it is there.
func (p Phase) looksAt(spec v1alpha1.ObjectSetObject, labels map[string]string) bool {
	return p.Conditions != nil || len(spec.ConditionMappings) > 0 || p.Probes.Selects(spec.Object.GroupVersionKind().GroupKind(), labels)
}

// Action is what was done to an object.
type Action string

const (
	// ActionCreated says that the object was not there.
	ActionCreated Action = "Created"
	// ActionUpdated says that the object was taken over, or differed.
	ActionUpdated Action = "Updated"
	// ActionRecovered says that somebody else had changed the object, and that this was undone.
	ActionRecovered Action = "Recovered"
	// ActionProgressed says that a later revision has the object.
	ActionProgressed Action = "Progressed"
	// ActionIdle says that the object was as it should be.
	ActionIdle Action = "Idle"
	// ActionCollision says that the object belongs to somebody else.
	ActionCollision Action = "Collision"
)

// Result is how a phase is.
type Result struct {
	// Violations say why nothing was created or adopted.
	Violations []Violation
	// Objects in the order of the phase; empty when there are violations.
	Objects []Object
}

// Object is how an object is.
type Object struct {
	Kind      schema.GroupVersionKind
	Namespace string
	Name      string
	Action    Action
	// Controlled says that the owner is the object's controller now.
	Controlled bool
	// Collision says why the object was refused.
	Collision string
	// Failures of probes; none when the object is available.
	Failures []string
	// Conditions of the object that are mapped, with the owner's generation.
	Conditions []metav1.Condition
}

// Key is the object's namespace and name.
func (o Object) Key() client.ObjectKey { return client.ObjectKey{Namespace: o.Namespace, Name: o.Name} }

// Complete says whether all objects are there, ours or a later revision's, and pass their probes.
func (r Result) Complete() bool {
	if len(r.Violations) > 0 {
		return false
	}
	for _, o := range r.Objects {
		if o.Action == ActionCollision || len(o.Failures) > 0 {
			return false
		}
	}
	return true
}

// Collisions returns the objects that were refused.
func (r Result) Collisions() []Object {
	var out []Object
	for _, o := range r.Objects {
		if o.Action == ActionCollision {
			out = append(out, o)
		}
	}
	return out
}

// ControllerOf lists the objects that the owner controls.
func (r Result) ControllerOf() []v1alpha1.ControlledObjectReference {
	var out []v1alpha1.ControlledObjectReference
	for _, o := range r.Objects {
		if o.Controlled {
			out = append(out, v1alpha1.ControlledObjectReference{Kind: o.Kind.Kind, Group: o.Kind.Group, Name: o.Name, Namespace: o.Namespace})
		}
	}
	return out
}

// Conditions lists the mapped conditions of all objects.
func (r Result) Conditions() []metav1.Condition {
	var out []metav1.Condition
	for _, o := range r.Objects {
		out = append(out, o.Conditions...)
	}
	return out
}

// Watcher is what the engine needs of watch.Cache.
type Watcher interface {
	Use(ctx context.Context, user types.UID, kinds []schema.GroupVersionKind) (late []schema.GroupVersionKind, _ error)
	Free(ctx context.Context, user types.UID) error
	Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*metav1.PartialObjectMetadata, error)
}

// Engine rolls phases out. It is safe for concurrent use by different owners.
type Engine struct {
	// Client reads and writes objects where they live, without a cache.
	Client client.Client
	// Mapper knows the kinds there.
	Mapper meta.RESTMapper
	// Watch watches them.
	Watch Watcher
	// Rules are those of the class of phases.
	Rules Rules
	// ForceAdoption takes every object over, whatever its protection says.
	ForceAdoption bool

	memory memory
}

// item is an object on its way through a pass.
type item struct {
	spec    v1alpha1.ObjectSetObject
	kind    schema.GroupVersionKind
	key     client.ObjectKey
	desired *unstructured.Unstructured
	// live is the least that is known, full everything; nil when it is not there, or was not read.
	live metav1.Object
	full *unstructured.Unstructured

	action    Action
	write     bool
	collision string
	judged    *judgement

	// tried says that a dry run of the object was answered, refused why not.
	tried   bool
	refused string
}

func (i *item) String() string { return fmt.Sprintf("object %s kind:%s", i.key, i.kind.Kind) }

// PollLate is when to look again at objects of kinds that can't be watched at present.
const PollLate = 30 * time.Second

// Use declares the objects that an owner will have rolled out, so that changes to them are noticed. late says that some can't be watched yet: look at them
// again after PollLate. A kind may not be listed at all, or not until what is rolled out now mends its conversion.
func (e *Engine) Use(ctx context.Context, o Owner, objects []v1alpha1.ObjectSetObject) (late bool, _ error) {
	seen := map[schema.GroupVersionKind]struct{}{}
	var kinds []schema.GroupVersionKind
	for i := range objects {
		kind := objects[i].Object.GroupVersionKind()
		if _, ok := seen[kind]; ok {
			continue
		}
		seen[kind] = struct{}{}
		if _, err := e.Mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			kinds = append(kinds, kind) // preflight reports those that are unknown
		}
	}
	kinds, err := e.Watch.Use(ctx, o.Entry.UID, kinds)
	return len(kinds) > 0, err
}

// Forget releases what an owner that is torn down has in use.
func (e *Engine) Forget(ctx context.Context, uid types.UID) error {
	e.memory.forget(uid)
	return e.Watch.Free(ctx, uid)
}

// Known says whether an owner has judged an object as it is, so that a pass would find nothing new.
func (e *Engine) Known(uid types.UID, obj *metav1.PartialObjectMetadata) bool {
	j := e.memory.get(uid, memoryKey{obj.GroupVersionKind(), client.ObjectKeyFromObject(obj)})
	return j != nil && j.uid == obj.UID && j.covers(obj.ResourceVersion)
}

// Reconcile rolls a phase out as far as it gets. An error is worth another try; what isn't is part of the result.
func (e *Engine) Reconcile(ctx context.Context, o Owner, p Phase) (Result, error) {
	e.memory.prepare(o)
	items := make([]*item, len(p.Objects))
	var violations []Violation
	for i := range p.Objects {
		it, v, err := e.prepare(ctx, o, p, p.Objects[i])
		if err != nil {
			return Result{}, err
		}
		items[i] = it
		violations = append(violations, v...)
	}
	if len(violations) > 0 {
		return Result{Violations: violations}, nil
	}
	if err := e.observeAll(ctx, o, p, items); err != nil {
		return Result{}, err
	}
	if !o.Paused {
		violations, err := e.apply(ctx, o, p, items)
		if len(violations) > 0 || err != nil {
			return Result{Violations: violations}, err
		}
	}
	result := Result{Objects: make([]Object, len(items))}
	for i, it := range items {
		result.Objects[i] = e.report(ctx, o, p, it)
	}
	return result, nil
}

// prepare finds out what is asked for and refuses what can't be. Objects that were judged as they are need no more.
func (e *Engine) prepare(ctx context.Context, o Owner, p Phase, spec v1alpha1.ObjectSetObject) (*item, []Violation, error) {
	it := &item{spec: spec, kind: spec.Object.GroupVersionKind(), key: client.ObjectKey{Namespace: spec.Object.GetNamespace(), Name: spec.Object.GetName()}}
	if it.key.Namespace == "" && e.Rules.DefaultNamespace {
		it.key.Namespace = o.Namespace
	}
	live, err := e.Watch.Get(ctx, it.kind, it.key)
	if err == nil {
		it.live = live
		j := e.memory.get(o.Entry.UID, memoryKey{it.kind, it.key})
		if j != nil && j.uid == live.UID && j.covers(live.ResourceVersion) && (o.Paused || !j.drifted) {
			it.judged = j
			return it, nil, nil
		}
	}
	mapping, err := e.Mapper.RESTMapping(it.kind.GroupKind(), it.kind.Version)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, nil, fmt.Errorf("%s: finding its kind: %w", it, err)
	}
	found := target{}
	if err == nil {
		found = target{registered: true, namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}
	}
	if found.registered && !found.namespaced && spec.Object.GetNamespace() == "" {
		it.key.Namespace = "" // the default is for kinds that have namespaces
	}
	if errs := e.Rules.checkNew(o, &spec.Object, found); len(errs) > 0 {
		return it, []Violation{{Position: position(p.Name, it), Errors: errs}}, nil
	}
	it.desired = e.desired(o, it)
	return it, nil, nil
}

// desired is the object as it is applied, without owners.
func (e *Engine) desired(o Owner, it *item) *unstructured.Unstructured {
	obj := it.spec.Object.DeepCopy()
	unstructured.RemoveNestedField(obj.Object, "status")
	unstructured.RemoveNestedField(obj.Object, "metadata", "creationTimestamp")
	obj.SetNamespace(it.key.Namespace)
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for key, value := range e.Rules.DefaultLabels {
		if _, set := labels[key]; !set {
			labels[key] = value
		}
	}
	for key, value := range o.Labels {
		labels[key] = value
	}
	labels[v1alpha1.CacheLabel] = v1alpha1.CacheLabelValue
	obj.SetLabels(labels)
	if e.Rules.NoRevision {
		return obj
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.RevisionAnnotation] = fmt.Sprint(o.Revision)
	obj.SetAnnotations(annotations)
	return obj
}

// report is what the owner hears of an object.
func (e *Engine) report(ctx context.Context, o Owner, p Phase, it *item) Object {
	if it.judged == nil {
		it.judged = e.judge(ctx, o, p, it)
	}
	out := Object{
		Kind: it.kind, Namespace: it.key.Namespace, Name: it.key.Name, Action: it.action,
		Collision: it.collision, Failures: it.judged.failures, Controlled: it.judged.controlled,
	}
	if out.Action == "" {
		out.Action = it.judged.action
	}
	for _, c := range it.judged.conditions {
		c.ObservedGeneration = o.Generation
		out.Conditions = append(out.Conditions, c)
	}
	return out
}

var errLostRace = errors.New("somebody else created the object at the same moment; nothing of ours is left on it")
