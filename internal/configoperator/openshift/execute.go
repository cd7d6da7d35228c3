package openshift

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	kubeapply "hcp.internal/platform/internal/kube/apply"
)

// ErrNoKind says that an API server doesn't serve a kind yet: the cluster-version-operator defines it.
var ErrNoKind = errors.New("the hosted API doesn't serve this kind yet: the cluster-version-operator of the payload defines it")

// Executor carries out Actions. It is safe for concurrent use, and what it remembers costs a request when it is lost.
type Executor struct {
	Hosted, Management client.Client
	// Infra is the cluster that runs virtual machines, nil: the management cluster.
	Infra client.Client
	// Owner is the field owner.
	Owner string

	mu sync.Mutex
	// settled are objects that differ from what Change asked for although we have written that: the API server has defaults of its own.
	settled map[string]settlement
}

// settlement is what was asked for, and the resourceVersion that the API server made of it.
type settlement struct{ asked, version string }

// Run carries out one Action. Errors are those of the API server, with kind and name, or ErrNoKind.
func (e *Executor) Run(ctx context.Context, a Action) error {
	c := e.Hosted
	if a.Management {
		c = e.Management
	}
	if a.Infra && e.Infra != nil {
		c = e.Infra
	}
	err := e.run(ctx, c, a)
	if meta.IsNoMatchError(err) {
		if a.Do == Delete || a.Do == DeleteOwn {
			return nil
		}
		if a.Infra {
			return ErrNoRoutes
		}
		return ErrNoKind
	}
	if a.AwaitsNamespace && missingNamespace(ctx, c, a.Object.GetNamespace(), err) {
		return nil
	}
	return err
}

func missingNamespace(ctx context.Context, c client.Client, namespace string, err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(namespaceKind)
	return apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Name: namespace}, ns))
}

func (e *Executor) run(ctx context.Context, c client.Client, a Action) error {
	applier := kubeapply.New(c, e.Owner)
	switch a.Do {
	case Create:
		return e.create(ctx, c, applier, a)
	case Edit, EditPresent:
		return e.edit(ctx, c, a)
	case Delete:
		return applier.Delete(ctx, a.Object)
	case DeleteOwn:
		live, err := read(ctx, c, a.Object)
		if err != nil || live == nil || live.GetLabels()[hyperv1.ManagedLabel] != "true" {
			return err
		}
		return applier.Delete(ctx, a.Object)
	case Apply:
	}
	err := applier.Apply(ctx, a.Object)
	if apierrors.IsInvalid(err) && replaceable[a.Object.GetObjectKind().GroupVersionKind().Kind] {
		// A field that can't be changed differs: somebody made the object before us. It has no other state, so it is made anew.
		if err := applier.Delete(ctx, a.Object); err != nil {
			return err
		}
		err = applier.Apply(ctx, a.Object)
	}
	return err
}

// replaceable are kinds whose objects are made anew when a field that can't be changed differs: the role of a binding, the content of an immutable ConfigMap.
var replaceable = map[string]bool{"ClusterRoleBinding": true, "RoleBinding": true, "EndpointSlice": true, "ConfigMap": true}

// create makes an object unless there is one.
func (e *Executor) create(ctx context.Context, c client.Client, applier *kubeapply.Applier, a Action) error {
	live, err := read(ctx, c, a.Object)
	if err != nil || live != nil {
		return err
	}
	if err := applier.Create(ctx, a.Object); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// edit reads an object, changes it, and writes what differs: first everything but the status, then that.
func (e *Executor) edit(ctx context.Context, c client.Client, a Action) error {
	live, err := read(ctx, c, a.Object)
	if err != nil {
		return err
	}
	if live == nil && a.Do == EditPresent || live != nil && !live.GetDeletionTimestamp().IsZero() {
		return nil
	}
	wanted, err := changed(a, live)
	if err != nil {
		return err
	}
	if live == nil {
		kubeapply.Count(wanted.GetKind(), "create", e.Owner)
		live = wanted.DeepCopy()
		delete(live.Object, "status")
		if err := c.Create(ctx, live, client.FieldOwner(e.Owner)); err != nil {
			return fmt.Errorf("creating %s: %w", a.Name(), err)
		}
	} else if !sameBut(live.Object, wanted.Object) && !e.isSettled(a, wanted, live) {
		kubeapply.Count(wanted.GetKind(), "update", e.Owner)
		written := wanted.DeepCopy()
		if err := c.Update(ctx, written, client.FieldOwner(e.Owner)); err != nil {
			return fmt.Errorf("updating %s: %w", a.Name(), err)
		}
		e.settle(a, wanted, written)
		live = written
	}
	return e.editStatus(ctx, c, a, live, wanted)
}

// changed is what Change makes of live, which is nil when there is none. Who the object is stays.
func changed(a Action, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	wanted := &unstructured.Unstructured{Object: map[string]any{}}
	if live != nil {
		wanted = live.DeepCopy()
	}
	identity := wanted.DeepCopy()
	wanted.SetGroupVersionKind(a.Object.GetObjectKind().GroupVersionKind())
	wanted.SetName(a.Object.GetName())
	wanted.SetNamespace(a.Object.GetNamespace())
	if live == nil {
		identity = wanted.DeepCopy()
	}
	a.Change(wanted.Object)
	for _, kept := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}} {
		value, found, err := unstructured.NestedString(identity.Object, kept...)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", a.Name(), err)
		}
		if found {
			_ = unstructured.SetNestedField(wanted.Object, value, kept...)
		}
	}
	wanted.Object = encoded(wanted.Object)
	return wanted, nil
}

// editStatus writes the status where it differs, through the subresource where the kind has one.
func (e *Executor) editStatus(ctx context.Context, c client.Client, a Action, live, wanted *unstructured.Unstructured) error {
	status, ok := wanted.Object["status"]
	if !ok || equality.Semantic.DeepEqual(live.Object["status"], status) {
		return nil
	}
	next := live.DeepCopy()
	next.Object["status"] = status
	kubeapply.Count(wanted.GetKind(), "status", e.Owner)
	err := c.Status().Update(ctx, next.DeepCopy(), client.FieldOwner(e.Owner))
	if apierrors.IsNotFound(err) { // the kind has no such subresource, or the object is gone; the second request tells
		err = c.Update(ctx, next, client.FieldOwner(e.Owner))
	}
	if err != nil {
		return fmt.Errorf("updating the status of %s: %w", a.Name(), err)
	}
	return nil
}

// sameBut compares everything but the status.
func sameBut(a, b map[string]any) bool {
	for key, value := range a {
		if key != "status" && !equality.Semantic.DeepEqual(value, b[key]) {
			return false
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok && key != "status" {
			return false
		}
	}
	return true
}

// asked is the hash of what was wanted, but for what changes with every write.
func asked(wanted *unstructured.Unstructured) string {
	w := wanted.DeepCopy()
	delete(w.Object, "status")
	w.SetResourceVersion("")
	w.SetManagedFields(nil)
	w.SetGeneration(0)
	hash, err := kubeapply.Hash(w.Object)
	if err != nil {
		return ""
	}
	return hash
}

func (e *Executor) isSettled(a Action, wanted, live *unstructured.Unstructured) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.settled[a.Name()]
	return ok && s.version == live.GetResourceVersion() && s.asked == asked(wanted)
}

func (e *Executor) settle(a Action, wanted, written *unstructured.Unstructured) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.settled == nil {
		e.settled = map[string]settlement{}
	}
	e.settled[a.Name()] = settlement{asked: asked(wanted), version: written.GetResourceVersion()}
}

// read gives the object, nil when there is none.
func read(ctx context.Context, c client.Client, obj client.Object) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", live.GetKind(), client.ObjectKeyFromObject(obj), err)
	}
	return live, nil
}
