package objecttemplate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/packages/author/gotemplate"
	"hcp.internal/platform/internal/packages/engine/owner"
	"hcp.internal/platform/internal/packages/engine/phase"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/status"
)

// Reconciler makes the objects of ObjectTemplates of one scope. It is the only writer of their status and of their objects.
type Reconciler struct {
	Scope scope.Scope
	// Client reads from a cache and writes.
	Client client.Client
	// Live reads sources without a cache: they may be Secrets, and are only needed when something changed.
	Live        client.Client
	Engine      *phase.Engine
	Clock       clock.PassiveClock
	Status      *status.Writer
	Environment *Environment
	// Share bounds the time that templates of a namespace may take; nil for no bound.
	Share *gotemplate.Share
	// RetryInterval and OptionalRetryInterval are how long a source that is missing is waited for.
	RetryInterval, OptionalRetryInterval time.Duration

	sources sourceIndex
	uids    sync.Map
	// failures are what templates failed with, by UID: the same text with the same values fails again, and may take seconds for it.
	failures sync.Map
}

// failed is an error of a template, and what it came from.
type failed struct {
	input [sha256.Size]byte
	err   error
	// until is the end of it when it was the time that ran out, which may have been the machine's fault.
	until time.Time
}

// slowRetry is when a template is tried again that took too long.
const slowRetry = 5 * time.Minute

// invalid is an error that is reported, and not tried again by itself.
type invalid struct {
	reason string
	err    error
	// after is when to look again nevertheless; 0 for never.
	after time.Duration
}

func (e *invalid) Error() string { return e.err.Error() }
func (e *invalid) Unwrap() error { return e.err }

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ot := &v1alpha1.ObjectTemplate{}
	if err := r.Client.Get(ctx, req.NamespacedName, ot); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, err
		}
		r.Status.Forget(req.NamespacedName)
		r.sources.set(req.NamespacedName, nil)
		if uid, ok := r.uids.LoadAndDelete(req.NamespacedName); ok {
			r.failures.Delete(uid)
			return ctrl.Result{}, r.Engine.Forget(ctx, uid.(types.UID))
		}
		return ctrl.Result{}, nil
	}
	if wait := r.Status.Wait(ot); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	r.uids.Store(req.NamespacedName, ot.UID)
	if !ot.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the object.
		rest := slices.DeleteFunc(slices.Clone(ot.Finalizers), func(f string) bool { return f == v1alpha1.CachedFinalizer })
		return ctrl.Result{}, errors.Join(r.Engine.Forget(ctx, ot.UID), r.Status.SetFinalizers(ctx, ot, rest))
	}
	if !slices.Contains(ot.Finalizers, v1alpha1.CachedFinalizer) {
		if err := r.Status.SetFinalizers(ctx, ot, append(slices.Clone(ot.Finalizers), v1alpha1.CachedFinalizer)); err != nil {
			return ctrl.Result{}, err
		}
	}
	before := *ot.Status.DeepCopy()
	after, err := r.make(ctx, ot)
	var bad *invalid
	var busy *gotemplate.BusyError
	switch {
	case errors.As(err, &busy):
		return ctrl.Result{RequeueAfter: busy.After}, nil
	case errors.As(err, &bad):
		c := phase.Condition(v1alpha1.ConditionTemplateInvalid, metav1.ConditionTrue, bad.reason, bad.Error())
		c.ObservedGeneration = ot.Generation
		conditions.Set(&ot.Status.Conditions, r.Clock.Now(), c)
		after = bad.after
	case err != nil:
		return ctrl.Result{}, err
	default:
		conditions.Remove(&ot.Status.Conditions, v1alpha1.ConditionTemplateInvalid)
	}
	return ctrl.Result{RequeueAfter: after}, r.Status.Patch(ctx, ot, before, ot.Status)
}

// make renders the template and keeps its object. It says when to look again for optional sources.
func (r *Reconciler) make(ctx context.Context, ot *v1alpha1.ObjectTemplate) (time.Duration, error) {
	if after := r.Share.Wait(tenantOf(ot)); after > 0 {
		return 0, &gotemplate.BusyError{After: after}
	}
	config, missing, err := r.collect(ctx, ot)
	if err != nil {
		return 0, err
	}
	obj, err := r.render(ctx, ot, config)
	if err != nil {
		return 0, err
	}
	after := time.Duration(0)
	if missing {
		after = r.OptionalRetryInterval
	}
	return after, r.keep(ctx, ot, obj)
}

// tenantOf is whose time a template takes: its namespace's, or its own.
func tenantOf(ot *v1alpha1.ObjectTemplate) string {
	if ot.Namespace == "" {
		return "/" + ot.Name
	}
	return ot.Namespace
}

// collect reads the sources. It says whether an optional one is missing.
func (r *Reconciler) collect(ctx context.Context, ot *v1alpha1.ObjectTemplate) (map[string]any, bool, error) {
	config, missing, values := map[string]any{}, false, gotemplate.NewPaths()
	if err := r.watchSources(ctx, ot); err != nil {
		return nil, false, err
	}
	for _, s := range ot.Spec.Sources {
		source := &unstructured.Unstructured{}
		source.SetGroupVersionKind(schema.FromAPIVersionAndKind(s.APIVersion, s.Kind))
		source.SetNamespace(s.Namespace)
		source.SetName(s.Name)
		if problem, err := r.placed(ot, source); err != nil || problem != "" {
			if err == nil {
				err = sourceError(s, errors.New(problem), 0)
			}
			return nil, false, err
		}
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(source), source)
		switch {
		case apierrors.IsNotFound(err) && s.Optional:
			missing = true
			continue
		case apierrors.IsNotFound(err):
			return nil, false, sourceError(s, err, r.RetryInterval)
		case err != nil:
			return nil, false, fmt.Errorf("reading source %s %s: %w", s.Kind, s.Name, err)
		}
		if source.GetLabels()[v1alpha1.CacheLabel] != v1alpha1.CacheLabelValue {
			if err := r.label(ctx, source); err != nil {
				return nil, false, err
			}
		}
		if err := copyItems(values, s.Items, source, config); err != nil {
			return nil, false, sourceError(s, err, 0)
		}
	}
	return config, missing, nil
}

func sourceError(s v1alpha1.ObjectTemplateSource, err error, after time.Duration) error {
	return &invalid{
		reason: v1alpha1.ReasonSourceError, after: after,
		err: fmt.Errorf("for source %s %s: %w", s.Kind, client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, err),
	}
}

// label makes a source visible to watches, so that its next change is seen.
func (r *Reconciler) label(ctx context.Context, source *unstructured.Unstructured) error {
	label := patch.Metadata{Labels: map[string]*string{v1alpha1.CacheLabel: ptr.To(v1alpha1.CacheLabelValue)}}
	target := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: source.GetNamespace(), Name: source.GetName()}}
	target.SetGroupVersionKind(source.GroupVersionKind())
	if err := r.Live.Patch(ctx, target, label.Patch(), client.FieldOwner(v1alpha1.FieldOwner)); err != nil {
		return fmt.Errorf("labelling source %s %s: %w", source.GetKind(), client.ObjectKeyFromObject(source), err)
	}
	return nil
}

// placed fills in the namespace of an object and says what is wrong with where it is.
func (r *Reconciler) placed(ot *v1alpha1.ObjectTemplate, obj *unstructured.Unstructured) (string, error) {
	kind := obj.GroupVersionKind()
	mapping, err := r.Engine.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Sprintf("%s not registered on the api server.", kind), nil
	}
	if err != nil {
		return "", fmt.Errorf("finding kind %s: %w", kind, err)
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	switch {
	case len(obj.GetOwnerReferences()) > 0:
		return "Object must not have a owner reference.", nil
	case ot.Namespace != "" && !namespaced:
		return "Must be namespaced scoped when part of an non-cluster-scoped API.", nil
	case ot.Namespace != "" && obj.GetNamespace() != "" && obj.GetNamespace() != ot.Namespace:
		return "Must stay within the same namespace.", nil
	case ot.Namespace == "" && namespaced && obj.GetNamespace() == "":
		return "Object doesn't have a namespace and no default is provided.", nil
	}
	if ot.Namespace != "" {
		obj.SetNamespace(ot.Namespace)
	}
	return "", nil
}

func (r *Reconciler) render(ctx context.Context, ot *v1alpha1.ObjectTemplate, config map[string]any) (*unstructured.Unstructured, error) {
	bad := func(err error) error {
		out := &invalid{reason: v1alpha1.ReasonTemplateError, err: errors.New(strings.Replace(err.Error(), `executing "" `, "", 1))}
		if errors.Is(err, gotemplate.ErrTime) {
			out.after = slowRetry
		}
		return out
	}
	environment, err := r.Environment.Get(ctx, ot.Namespace)
	if err != nil {
		return nil, fmt.Errorf("asking for the environment: %w", err)
	}
	data, err := json.Marshal(map[string]any{"config": config, "environment": environment})
	if err != nil {
		return nil, bad(err)
	}
	input := sha256.Sum256(append([]byte(ot.Spec.Template+"\x00"), data...))
	if known, ok := r.failures.Load(ot.UID); ok {
		last := known.(failed)
		if last.input == input && (last.until.IsZero() || r.Clock.Now().Before(last.until)) {
			return nil, bad(last.err)
		}
	}
	var obj *unstructured.Unstructured
	err = r.Share.Do(ctx, tenantOf(ot), func() error {
		var err error
		obj, err = manifest(ctx, ot.Spec.Template, data)
		return err
	})
	var busy *gotemplate.BusyError
	switch {
	case errors.As(err, &busy) || ctx.Err() != nil:
		return nil, err
	case err != nil:
		last := failed{input: input, err: err}
		if errors.Is(err, gotemplate.ErrTime) {
			last.until = r.Clock.Now().Add(slowRetry - time.Second)
		}
		r.failures.Store(ot.UID, last)
		return nil, bad(err)
	}
	r.failures.Delete(ot.UID)
	problem, err := r.placed(ot, obj)
	if err != nil {
		return nil, err
	}
	if problem != "" {
		return nil, &invalid{reason: v1alpha1.ReasonSourceError, err: fmt.Errorf("%s %s: %s", obj.GetKind(), client.ObjectKeyFromObject(obj), problem)}
	}
	return obj, nil
}

// manifest renders a template that gives the YAML of one object. data is JSON.
func manifest(ctx context.Context, text string, data []byte) (*unstructured.Unstructured, error) {
	plain := map[string]any{}
	if err := json.Unmarshal(data, &plain); err != nil {
		return nil, err
	}
	rendered, err := gotemplate.Execute(ctx, text, plain)
	if err != nil {
		return nil, err
	}
	asJSON, err := gotemplate.YAMLToJSON(rendered)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(asJSON); err != nil {
		return nil, gotemplate.Short(err)
	}
	return obj, nil
}

// keep makes the object as it was rendered, and copies its conditions.
func (r *Reconciler) keep(ctx context.Context, ot *v1alpha1.ObjectTemplate, obj *unstructured.Unstructured) error {
	content, err := obj.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding what was rendered: %w", err)
	}
	o := r.owner(ot)
	o.Content = string(content)
	kind := obj.GroupVersionKind()
	ref := &v1alpha1.ControlledObjectReference{Kind: kind.Kind, Group: kind.Group, Version: kind.Version, Name: obj.GetName(), Namespace: obj.GetNamespace()}
	if err := r.removeOther(ctx, ot, o, ref); err != nil {
		return err
	}
	result, err := r.Engine.Reconcile(ctx, o, phase.Phase{Objects: []v1alpha1.ObjectSetObject{{Object: *obj}}, Conditions: conditionsOf})
	if err != nil {
		return err
	}
	const retryRefused = 30 * time.Second // what stands in the way is not watched
	if len(result.Violations) > 0 {
		return &invalid{reason: v1alpha1.ReasonSourceError, after: retryRefused, err: errors.New(strings.Join(result.Violations[0].Errors, ", "))}
	}
	if collisions := result.Collisions(); len(collisions) > 0 {
		return &invalid{reason: v1alpha1.ReasonSourceError, after: retryRefused, err: errors.New(collisions[0].Collision)}
	}
	ot.Status.ControllerOf = ref
	copied := result.Conditions()
	ot.Status.Conditions = slices.DeleteFunc(ot.Status.Conditions, func(c metav1.Condition) bool {
		return !slices.ContainsFunc(copied, func(n metav1.Condition) bool { return n.Type == c.Type })
	})
	conditions.Set(&ot.Status.Conditions, r.Clock.Now(), copied...)
	return nil
}

// removeOther deletes the object that was made before, when the template now gives another one.
func (r *Reconciler) removeOther(ctx context.Context, ot *v1alpha1.ObjectTemplate, o phase.Owner, ref *v1alpha1.ControlledObjectReference) error {
	old := ot.Status.ControllerOf
	if old == nil || old.Version == "" || (old.Kind == ref.Kind && old.Group == ref.Group && old.Name == ref.Name && old.Namespace == ref.Namespace) {
		return nil
	}
	obj := unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: old.Group, Version: old.Version, Kind: old.Kind})
	obj.SetNamespace(old.Namespace)
	obj.SetName(old.Name)
	_, err := r.Engine.Teardown(ctx, o, phase.Phase{Objects: []v1alpha1.ObjectSetObject{{Object: obj}}})
	return err
}

func (r *Reconciler) owner(ot *v1alpha1.ObjectTemplate) phase.Owner {
	return phase.Owner{
		Entry:     owner.Entry{APIVersion: v1alpha1.GroupVersion.String(), Kind: r.Scope.Kind("ObjectTemplate"), Name: ot.Name, UID: ot.UID},
		Namespace: ot.Namespace, Generation: ot.Generation,
	}
}

// conditionsOf are the conditions of an object that are about its present state.
func conditionsOf(obj *unstructured.Unstructured) []metav1.Condition {
	if observed, found, err := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); err == nil && found && observed != obj.GetGeneration() {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	var out []metav1.Condition
	for _, item := range list {
		c, ok := item.(map[string]any)
		if !ok {
			continue
		}
		generation, found, _ := unstructured.NestedInt64(c, "observedGeneration")
		text := func(field string) string { s, _, _ := unstructured.NestedString(c, field); return s }
		if (found && generation != 0 && generation != obj.GetGeneration()) || text("type") == "" || text("type") == v1alpha1.ConditionTemplateInvalid {
			continue
		}
		out = append(out, phase.Condition(text("type"), metav1.ConditionStatus(text("status")), text("reason"), text("message")))
	}
	return out
}
