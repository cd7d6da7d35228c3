package phase

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/conditiontype"
	"hcp.internal/platform/internal/packages/engine/owner"
	"hcp.internal/platform/internal/packages/engine/watch"
)

// atOnce is how many requests for one phase, which have no order among them, are made at a time.
const atOnce = 4

// forEach calls do for all items, several at a time, and returns the first error that one of them met.
func forEach(ctx context.Context, items []*item, do func(ctx context.Context, it *item) error) error {
	if len(items) == 1 {
		return do(ctx, items[0])
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, it := range items {
		group.Go(func() error { return do(ctx, it) })
	}
	return group.Wait()
}

// observeAll reads what decisions about objects need, and makes them. Objects that the watch doesn't know are most often not there: a dry run
// says so, and at the same time whether the API server takes them. Only what would be written first is read, since it is not tried.
func (e *Engine) observeAll(ctx context.Context, o Owner, p Phase, items []*item) error {
	var todo []*item
	for _, it := range items {
		if it.judged == nil {
			todo = append(todo, it)
		}
	}
	if len(todo) == 0 {
		return nil
	}
	return forEach(ctx, todo, func(ctx context.Context, it *item) error {
		var err error
		if it.live == nil && it != todo[0] && !o.Paused && !o.reported(it) {
			err = e.try(ctx, o, it)
		}
		if err == nil {
			err = e.observe(ctx, o, p, it)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", it, err)
		}
		return nil
	})
}

func (o Owner) reported(it *item) bool {
	return slices.ContainsFunc(o.Reported, func(ref v1alpha1.ControlledObjectReference) bool {
		return ref.Name == it.key.Name && ref.Namespace == it.key.Namespace && ref.Kind == it.kind.Kind && ref.Group == it.kind.Group
	})
}

// try decides that an object is to be created when a dry run says that it would be. In all other cases it decides nothing.
func (e *Engine) try(ctx context.Context, o Owner, it *item) error {
	obj, err := e.owned(o, it)
	if err != nil {
		return err
	}
	answer, err := e.send(ctx, obj, client.ForceOwnership, client.DryRunAll)
	switch {
	case err == nil && answer.ResourceVersion == "": // only what is stored has one
		it.tried, it.action, it.write = true, ActionCreated, true
	case err != nil:
		if _, isViolation := ViolationOf(err); !isViolation {
			return fmt.Errorf("trying it out: %w", err)
		}
	}
	return nil
}

// observe reads what a decision about an object needs, and makes it.
func (e *Engine) observe(ctx context.Context, o Owner, p Phase, it *item) error {
	if it.tried {
		return nil
	}
	if it.live == nil { // the watch knows of none, but it may lack the label
		if err := e.read(ctx, it); err != nil {
			return err
		}
	}
	if it.live == nil {
		it.action, it.write = ActionCreated, true
		return nil
	}
	v, err := e.decide(ctx, o, it)
	if err != nil {
		return err
	}
	// What is adopted is written anyway, and the answer has everything. What is refused is of no interest.
	if (v == keep || (v == leave && p.looksAt(it.spec, it.live.GetLabels()))) && it.full == nil {
		if err := e.read(ctx, it); err != nil {
			return err
		}
		if it.live == nil {
			it.action, it.write = ActionCreated, true
			return nil
		}
		if v, err = e.decide(ctx, o, it); err != nil { // the watch was behind
			return err
		}
	}
	switch v {
	case adopt:
		it.action, it.write = ActionUpdated, true
	case leave:
		it.action = ActionProgressed
	case collide:
		it.action = ActionCollision
	case keep:
		it.action = ActionIdle
		if !e.intact(o, it) {
			it.action, it.write = ActionRecovered, true
		}
	}
	return nil
}

func (e *Engine) decide(ctx context.Context, o Owner, it *item) (verdict, error) {
	f, err := e.Rules.factsOf(it.live)
	if err != nil {
		return collide, err
	}
	if stranger := o.stranger(f.owners); stranger != nil && e.Rules.LeaveToNewer && o.Newer != nil && f.revision > o.Revision {
		if f.newer, err = o.Newer(ctx, *stranger); err != nil {
			return collide, err
		}
	}
	if f.unowned && e.Rules.LeaveToNewer && o.Superseded != nil && f.revision > o.Revision {
		superseded, err := o.Superseded()
		if err != nil {
			return collide, err
		}
		f.leftover = !superseded
	}
	v, why := e.Rules.decide(o, e.ForceAdoption, it.spec.CollisionProtection, f)
	it.collision = ""
	if v == collide {
		it.collision = refusal(why, it.kind, it.key)
	}
	return v, nil
}

// stranger is a controller that is neither the owner nor one of its siblings; nil when there is none.
func (o Owner) stranger(owners []owner.Entry) *owner.Entry {
	c := owner.Controller(owners)
	if c == nil || c.Same(o.Entry) {
		return nil
	}
	if _, sibling := o.Siblings[c.UID]; sibling {
		return nil
	}
	return c
}

// read reads the object itself; live is nil afterwards when there is none.
func (e *Engine) read(ctx context.Context, it *item) error {
	full := &unstructured.Unstructured{}
	full.SetGroupVersionKind(it.kind)
	err := e.Client.Get(ctx, it.key, full)
	if apierrors.IsNotFound(err) {
		it.live, it.full = nil, nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	it.live, it.full = full, full
	return nil
}

// intact says whether nobody has changed what we applied. When our field manager owns exactly what it did after our last write and the
// object's content has the same generation, it is. Else values are compared, and the API server may spell them in another way than we did; it
// then gets an apply that changes nothing, once.
func (e *Engine) intact(o Owner, it *item) bool {
	fields, owned := ownedFields(it.full)
	if !owned {
		return false
	}
	j := e.memory.get(o.Entry.UID, memoryKey{it.kind, it.key})
	if j != nil && !j.drifted && j.uid == it.full.GetUID() && j.fields == hashOf(fields) &&
		j.generation != 0 && j.generation == it.full.GetGeneration() && sameMetadata(it.desired, it.full) {
		return true
	}
	return covered(it.desired.Object, fields) && contains(it.full.Object, it.desired.Object)
}

// sameMetadata looks at what no generation counts.
func sameMetadata(desired, live *unstructured.Unstructured) bool {
	for key, value := range desired.GetLabels() {
		if live.GetLabels()[key] != value {
			return false
		}
	}
	for key, value := range desired.GetAnnotations() {
		if live.GetAnnotations()[key] != value {
			return false
		}
	}
	return true
}

func hashOf(fields []byte) uint64 {
	h := fnv.New64a()
	h.Write(fields)
	return h.Sum64()
}

// judge sums up what is known about an object at the end of a pass, and remembers it.
func (e *Engine) judge(ctx context.Context, o Owner, p Phase, it *item) *judgement {
	key := memoryKey{it.kind, it.key}
	if it.live == nil {
		e.memory.drop(o.Entry.UID, key)
		return &judgement{action: it.action, failures: []string{"not found"}}
	}
	j := &judgement{
		uid: it.live.GetUID(), resourceVersion: it.live.GetResourceVersion(), generation: it.live.GetGeneration(),
		action: ActionIdle, drifted: it.write && o.Paused,
	}
	if it.action == ActionProgressed {
		j.action = ActionProgressed
	}
	if owners, err := e.Rules.Owners.Read(it.live); err == nil {
		controller := owner.Controller(owners)
		j.controlled = controller != nil && controller.Same(o.Entry)
	}
	fields, _ := ownedFields(it.live)
	j.fields = hashOf(fields)
	if it.full != nil {
		j.failures = p.Probes.Check(ctx, it.full)
		j.conditions = mapped(it.spec.ConditionMappings, it.full)
		if p.Conditions != nil {
			j.conditions = append(j.conditions, p.Conditions(it.full)...)
		}
	}
	if o.Paused && it.action == ActionUpdated {
		// Whoever has it serves with it: who takes this for success lets that end.
		j.failures = append(j.failures, "not taken over, because this is paused")
	}
	if it.action == ActionCollision {
		// It may be resolved by changes that no watch shows, such as the end of a revision.
		e.memory.drop(o.Entry.UID, key)
		return j
	}
	e.memory.put(o.Entry.UID, key, j)
	return j
}

// mapped returns the conditions of an object that its owner shall have, under their new types and without generation. One of a type that no status accepts
// is left out: with it the owner could report nothing at all.
func mapped(mappings []v1alpha1.ConditionMapping, obj *unstructured.Unstructured) []metav1.Condition {
	if len(mappings) == 0 {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	var out []metav1.Condition
	for _, item := range list {
		c, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if generation, _, _ := unstructured.NestedInt64(c, "observedGeneration"); generation != 0 && generation != obj.GetGeneration() {
			continue
		}
		for _, m := range mappings {
			if c["type"] != m.SourceType || !conditiontype.Valid(m.DestinationType) {
				continue
			}
			text := func(field string) string { s, _, _ := unstructured.NestedString(c, field); return s }
			out = append(out, Condition(m.DestinationType, metav1.ConditionStatus(text("status")), text("reason"), text("message")))
		}
	}
	return out
}

// Controlled lists which of these objects the owner controls, as far as the watch knows; of kinds that can't be watched yet, those that the owner has
// reported. It reads and writes nothing.
func (e *Engine) Controlled(ctx context.Context, o Owner, objects []v1alpha1.ObjectSetObject) []v1alpha1.ControlledObjectReference {
	var out []v1alpha1.ControlledObjectReference
	for i := range objects {
		kind, key := objects[i].Object.GroupVersionKind(), client.ObjectKeyFromObject(&objects[i].Object)
		if key.Namespace == "" && e.Rules.DefaultNamespace {
			key.Namespace = o.Namespace
		}
		live, err := e.Watch.Get(ctx, kind, key)
		if errors.Is(err, watch.ErrNotWatched) && o.reported(&item{kind: kind, key: key}) {
			out = append(out, v1alpha1.ControlledObjectReference{Kind: kind.Kind, Group: kind.Group, Name: key.Name, Namespace: key.Namespace})
			continue
		}
		if err != nil {
			continue
		}
		owners, err := e.Rules.Owners.Read(live)
		if c := owner.Controller(owners); err == nil && c != nil && c.Same(o.Entry) {
			out = append(out, v1alpha1.ControlledObjectReference{Kind: kind.Kind, Group: kind.Group, Name: key.Name, Namespace: key.Namespace})
		}
	}
	return out
}
