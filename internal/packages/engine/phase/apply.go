package phase

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/packages/engine/owner"
	"hcp.internal/platform/internal/packages/engine/watch"
)

// Violation is why an object can't be part of its phase.
type Violation struct {
	// Position says which object: Phase "deploy", Deployment ns/web.
	Position string
	Errors   []string
}

func (v Violation) String() string { return v.Position + ": " + strings.Join(v.Errors, ", ") }

func position(phase string, it *item) string {
	return fmt.Sprintf("Phase %q, %s %s", phase, it.kind.Kind, it.key)
}

// ViolationOf tells an answer that will not change by itself from one that is worth another try.
func ViolationOf(err error) (string, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", false
	}
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonUnauthorized, metav1.StatusReasonForbidden, metav1.StatusReasonAlreadyExists, metav1.StatusReasonConflict,
		metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonRequestEntityTooLarge,
		metav1.StatusReasonUnsupportedMediaType, metav1.StatusReasonNotAcceptable, metav1.StatusReasonNotFound:
		return err.Error(), true
	case metav1.StatusReasonUnknown:
		return err.Error(), strings.Contains(err.Error(), "failed to create typed patch object")
	default:
		return "", false
	}
}

// apply writes what is to be written, in order. Nothing new is written when any of it would be refused.
func (e *Engine) apply(ctx context.Context, o Owner, p Phase, items []*item) ([]Violation, error) {
	held := false
	for _, it := range items {
		held = held || (e.Rules.HoldOnCollision && it.action == ActionCollision)
	}
	var writes, fresh []*item
	for _, it := range items {
		isNew := it.action == ActionCreated || it.action == ActionUpdated
		if !it.write || (held && isNew) {
			continue
		}
		writes = append(writes, it)
		if isNew {
			fresh = append(fresh, it)
		}
	}
	violations, err := e.preflight(ctx, o, p, writes, fresh)
	if len(violations) > 0 || err != nil {
		return violations, err
	}
	for _, it := range writes {
		err := e.write(ctx, o, p, it)
		if text, isViolation := ViolationOf(err); isViolation && !apierrors.IsConflict(err) {
			return []Violation{{Position: position(p.Name, it), Errors: []string{text}}}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", it, err)
		}
	}
	return nil, nil
}

// preflight asks the API server about every object that is new, except the one that is written first: if that one is refused, nothing
// has been written.
func (e *Engine) preflight(ctx context.Context, o Owner, p Phase, writes, fresh []*item) ([]Violation, error) {
	var untried []*item
	for _, it := range fresh {
		if it != writes[0] && !it.tried {
			untried = append(untried, it)
		}
	}
	if len(untried) == 0 {
		return nil, nil
	}
	err := forEach(ctx, untried, func(ctx context.Context, it *item) error {
		err := e.dryRun(ctx, o, it)
		text, isViolation := ViolationOf(err)
		if err != nil && !isViolation {
			return fmt.Errorf("%s: trying it out: %w", it, err)
		}
		it.tried, it.refused = true, text
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []Violation
	for _, it := range untried {
		if it.refused != "" {
			out = append(out, Violation{Position: position(p.Name, it), Errors: []string{it.refused}})
		}
	}
	return out, nil
}

func (e *Engine) dryRun(ctx context.Context, o Owner, it *item) error {
	obj, err := e.owned(o, it)
	if err != nil {
		return err
	}
	_, err = e.send(ctx, obj, client.ForceOwnership, client.DryRunAll)
	if first := apply.WithoutEmptied(obj, err); first != nil { // it will be written in two parts
		_, err = e.send(ctx, first, client.ForceOwnership, client.DryRunAll)
	}
	if apierrors.IsNotFound(err) {
		return e.Client.Create(ctx, obj, client.FieldOwner(v1alpha1.FieldOwner), client.DryRunAll)
	}
	return err
}

// send applies an object and asks for no more than metadata in return.
func (e *Engine) send(ctx context.Context, obj *unstructured.Unstructured, opts ...client.PatchOption) (*metav1.PartialObjectMetadata, error) {
	data, err := obj.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	answer.SetGroupVersionKind(obj.GroupVersionKind())
	opts = append(opts, client.FieldOwner(v1alpha1.FieldOwner))
	return answer, e.Client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, data), opts...)
}

// sendFor applies an object. The answer is the whole object when somebody wants to look at it.
func (e *Engine) sendFor(ctx context.Context, p Phase, it *item, obj *unstructured.Unstructured, opts ...client.PatchOption) error {
	if !p.looksAt(it.spec, obj.GetLabels()) {
		answer, err := e.send(ctx, obj, opts...)
		if err == nil {
			it.live, it.full = answer, nil
		}
		return err
	}
	data, err := obj.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding it: %w", err)
	}
	opts = append(opts, client.FieldOwner(v1alpha1.FieldOwner))
	if err := e.Client.Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, data), opts...); err != nil {
		return err
	}
	it.live, it.full = obj, obj
	return nil
}

// owned is the object to send, with its owners.
func (e *Engine) owned(o Owner, it *item) (*unstructured.Unstructured, error) {
	var owners []owner.Entry
	if it.live != nil {
		var err error
		if owners, err = e.Rules.Owners.Read(it.live); err != nil {
			return nil, err
		}
	}
	obj := it.desired.DeepCopy()
	return obj, e.Rules.Owners.Write(obj, owner.Adopt(owners, o.Entry))
}

// write creates, adopts or repairs an object.
func (e *Engine) write(ctx context.Context, o Owner, p Phase, it *item) error {
	if it.live == nil {
		return e.create(ctx, o, p, it)
	}
	if err := e.migrate(ctx, it); err != nil {
		return err
	}
	obj, err := e.owned(o, it)
	if err != nil {
		return err
	}
	// What was decided holds for the object as it was seen, and for no other.
	obj.SetResourceVersion(it.live.GetResourceVersion())
	before := it.live.GetAnnotations()[v1alpha1.RevisionAnnotation]
	return apply.InTwoParts(obj, func(u *unstructured.Unstructured) error {
		err := e.sendFor(ctx, p, it, u, client.ForceOwnership)
		if err == nil {
			u.SetResourceVersion(it.live.GetResourceVersion())
		}
		return err
	}, func(first *unstructured.Unstructured) { // still what the revision before has written
		annotations := first.GetAnnotations()
		annotations[v1alpha1.RevisionAnnotation] = before
		first.SetAnnotations(annotations)
	})
}

// create applies an object that is not there. Server-side apply can't insist on that. When somebody else was faster, our fields are
// given up again at once, which leaves the object as they made it.
func (e *Engine) create(ctx context.Context, o Owner, p Phase, it *item) error {
	obj, err := e.owned(o, it)
	if err != nil {
		return err
	}
	if err := e.sendFor(ctx, p, it, obj); err != nil {
		return err
	}
	for _, f := range it.live.GetManagedFields() {
		if f.Manager == v1alpha1.FieldOwner || f.Subresource != "" {
			continue
		}
		nothing := &unstructured.Unstructured{}
		nothing.SetGroupVersionKind(it.kind)
		nothing.SetNamespace(it.key.Namespace)
		nothing.SetName(it.key.Name)
		nothing.SetResourceVersion(it.live.GetResourceVersion())
		_, err := e.send(ctx, nothing)
		return errors.Join(errLostRace, err)
	}
	return nil
}

// migrate turns fields that one of our field managers wrote by update into applied ones. An apply could not remove them otherwise.
func (e *Engine) migrate(ctx context.Context, it *item) error {
	if metadata, ok := it.live.(*metav1.PartialObjectMetadata); ok && !watch.HasUpdates(metadata) {
		return nil
	}
	if it.full == nil {
		version := it.live.GetResourceVersion()
		if err := e.read(ctx, it); err != nil {
			return err
		}
		if it.live == nil || it.live.GetResourceVersion() != version {
			return apierrors.NewConflict(e.resource(it), it.key.Name, errors.New("it changed since it was looked at"))
		}
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(it.full, sets.New(watch.LegacyManagers...), v1alpha1.FieldOwner)
	if err != nil {
		return fmt.Errorf("migrating its managed fields: %w", err)
	}
	if patch == nil {
		return nil
	}
	if err := e.Client.Patch(ctx, it.full, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(v1alpha1.FieldOwner)); err != nil {
		return fmt.Errorf("migrating its managed fields: %w", err)
	}
	it.live = it.full
	return nil
}
