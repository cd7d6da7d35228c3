// Package apply writes desired objects with server-side apply, and sends nothing when nothing changed.
//
// Each applied object carries the hash of what was asked for (HashAnnotation). A live object with the same hash that still
// has every desired value is left alone without a request; everything else is sent. So removing a field is noticed by the
// hash, and somebody else's change by the comparison.
//
// What the Scheme of the client knows of an object's kind is heeded: its defaults are a part of what is asked for, and what it finds invalid
// is not sent, with the error that an API server would give.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// HashAnnotation holds the SHA-256 of the object as it was last applied.
const HashAnnotation = "hypershift.openshift.io/desired-state-hash"

// writes counts the requests that change something, so that a hot loop shows and a test can assert quiet.
var writes = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "hypershift_object_writes_total",
	Help: "Write requests sent by kind, verb and field owner.",
}, []string{"kind", "verb", "owner"})

// Register adds the package's metrics to a registry; controller-runtime's is metrics.Registry.
func Register(r prometheus.Registerer) error { return r.Register(writes) }

// Count counts a write that did not go through an Applier, so that the metric tells of all of them.
func Count(kind, verb, owner string) { writes.WithLabelValues(kind, verb, owner).Inc() }

// RegisterDefault adds the package's metrics to controller-runtime's registry; call it once, from main.
func RegisterDefault() error { return Register(metrics.Registry) }

// Applier applies objects for one field owner. It is safe for concurrent use.
type Applier struct {
	client client.Client
	owner  string
	memory *Memory // nil: every object is compared
}

// New returns an Applier that reads and writes through c and owns fields as owner. Reads may come from a cache: a stale read
// costs a request at worst.
func New(c client.Client, owner string) *Applier { return &Applier{client: c, owner: owner} }

// Owner is the field owner that the Applier writes as.
func (a *Applier) Owner() string { return a.owner }

// Apply makes the live object have every field of obj, with our ownership; it is created when absent. obj isn't changed and
// must have no status: a status is dropped. Errors are those of the API server, wrapped with kind and name.
func (a *Applier) Apply(ctx context.Context, obj client.Object) error {
	return a.apply(ctx, obj, "")
}

// ApplyLocked is Apply for an object that was decided on from what was read: it carries the resourceVersion of that, or none
// when nothing was there. When the object is another one by now, nothing is written, and the error is a conflict.
func (a *Applier) ApplyLocked(ctx context.Context, obj client.Object) error {
	if version := obj.GetResourceVersion(); version != "" {
		return a.apply(ctx, obj, version)
	}
	err := a.Create(ctx, obj)
	if apierrors.IsAlreadyExists(err) {
		kind := obj.GetObjectKind().GroupVersionKind()
		err = apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kindOf(a.client.Scheme(), obj)}, obj.GetName(), err)
	}
	return err
}

// Create is Apply for an object that must not be there yet. Otherwise nothing is written, and the error says that it exists.
func (a *Applier) Create(ctx context.Context, obj client.Object) error {
	desired, err := a.prepare(obj)
	if err != nil {
		return err
	}
	if err := a.validate(ctx, obj, nil); err != nil {
		return fmt.Errorf("creating %s: %w", describe(desired), err)
	}
	writes.WithLabelValues(desired.GetKind(), "create", a.owner).Inc()
	if err := a.client.Create(ctx, desired, client.FieldOwner(a.owner)); err != nil {
		return fmt.Errorf("creating %s: %w", describe(desired), err)
	}
	return nil
}

func (a *Applier) apply(ctx context.Context, obj client.Object, version string) error {
	desired, err := a.prepare(obj)
	if err != nil {
		return err
	}
	live, err := a.live(ctx, obj)
	if err != nil {
		return fmt.Errorf("reading %s: %w", describe(desired), err)
	}
	if live != nil && a.upToDate(desired, live) {
		return nil
	}
	if err := a.validate(ctx, obj, live); err != nil {
		return fmt.Errorf("applying %s: %w", describe(desired), err)
	}
	desired.SetResourceVersion(version)
	if err := a.send(ctx, desired); err != nil {
		return fmt.Errorf("applying %s: %w", describe(desired), err)
	}
	return nil
}

// All applies every object in order. A failure doesn't stop the others; the failures are joined.
func (a *Applier) All(ctx context.Context, objs ...client.Object) error {
	var errs []error
	for _, obj := range objs {
		errs = append(errs, a.Apply(ctx, obj))
	}
	return errors.Join(errs...)
}

// Current says whether live is what Apply(obj) leaves behind: applied from the same desired state, and not changed since. A
// caller that reads from a cache can so tell whether what it sees is from before or after its own write.
func (a *Applier) Current(obj, live client.Object) (bool, error) {
	desired, err := a.prepare(obj)
	if err != nil {
		return false, err
	}
	return a.upToDate(desired, live), nil
}

// Delete deletes obj if it is there. With a UID in obj, only the object of that UID goes, not a successor of the same name.
func (a *Applier) Delete(ctx context.Context, obj client.Object) error {
	live, err := a.live(ctx, obj)
	if err != nil {
		return fmt.Errorf("reading %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	if live == nil || !live.GetDeletionTimestamp().IsZero() {
		return nil
	}
	uid := obj.GetUID()
	if uid == "" {
		uid = live.GetUID()
	}
	writes.WithLabelValues(kindOf(a.client.Scheme(), obj), "delete", a.owner).Inc()
	// In the background, which is what the API server does unasked but for a Job: its pods would stay.
	err = a.client.Delete(ctx, live, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// live reads the current object in the same Go type as obj, nil when there is none.
func (a *Applier) live(ctx context.Context, obj client.Object) (client.Object, error) {
	live := newLike(obj)
	err := a.client.Get(ctx, client.ObjectKeyFromObject(obj), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return live, nil
}

// prepare turns obj into what is sent: with kind and version, without status and server-set metadata, with its hash.
func (a *Applier) prepare(obj client.Object) (*unstructured.Unstructured, error) {
	u, err := Desired(a.client.Scheme(), obj)
	if err != nil {
		return nil, err
	}
	annotations := u.GetAnnotations()
	delete(annotations, HashAnnotation)
	u.SetAnnotations(annotations)
	hash, err := Hash(u.Object)
	if err != nil {
		return nil, fmt.Errorf("hashing %s: %w", describe(u), err)
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[HashAnnotation] = hash
	u.SetAnnotations(annotations)
	return u, nil
}

// validate asks the Scheme about an object that is about to be written over live, which is nil when there is none. The error is one that
// apierrors.IsInvalid knows.
func (a *Applier) validate(ctx context.Context, obj, live client.Object) error {
	scheme, whole := a.client.Scheme(), obj.DeepCopyObject()
	scheme.Default(whole)
	problems := scheme.Validate(ctx, nil, whole)
	if live != nil {
		problems = scheme.ValidateUpdate(ctx, nil, whole, live)
	}
	if len(problems) == 0 {
		return nil
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return err
	}
	return apierrors.NewInvalid(gvk.GroupKind(), obj.GetName(), problems)
}

// Hash is the hex SHA-256 of v's JSON; maps are in key order, so equal values have equal hashes.
func Hash(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// upToDate is the function of that name, with memory.
func (a *Applier) upToDate(desired *unstructured.Unstructured, live client.Object) bool {
	hash := desired.GetAnnotations()[HashAnnotation]
	if a.memory.has(live, hash) {
		return true
	}
	if !upToDate(desired, live) {
		return false
	}
	a.memory.add(live, hash)
	return true
}

// upToDate says whether live was applied from the same desired state and nobody has changed a desired value since.
func upToDate(desired *unstructured.Unstructured, live client.Object) bool {
	if live.GetAnnotations()[HashAnnotation] != desired.GetAnnotations()[HashAnnotation] {
		return false
	}
	want, err := normalize(live, desired.Object)
	if err != nil {
		return false
	}
	// The Go type brings back the zeros of a status that nobody asked for.
	delete(want, "status")
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false
	}
	return Contains(have, want, func(field string) bool { return associative[field] })
}

// associative are the lists that the API server merges by key, so that others may add items of their own beside ours.
// All other lists are ours as a whole: an item more, such as a rule in a Role, is a change to undo.
var associative = map[string]bool{
	"containers": true, "initContainers": true, "env": true, "volumes": true, "volumeMounts": true, "ports": true,
	"ownerReferences": true, "imagePullSecrets": true, "finalizers": true,
}

// normalize takes content through live's Go type, so that "1000m" and "1" are the same quantity on both sides.
func normalize(live client.Object, content map[string]any) (map[string]any, error) {
	typed := newLike(live)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, typed); err != nil {
		return nil, err
	}
	typed.GetObjectKind().SetGroupVersionKind(live.GetObjectKind().GroupVersionKind())
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	delete(out, "status") // some Go types write a zero status, which a live one would never equal
	return out, err
}

// newLike returns an empty object of obj's Go type (and kind, when unstructured).
func newLike(obj client.Object) client.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		empty := &unstructured.Unstructured{}
		empty.SetGroupVersionKind(u.GroupVersionKind())
		return empty
	}
	empty := emptyOf(obj)
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok { // says nowhere else what it is the metadata of
		empty.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	}
	return empty
}

func kindOf(scheme *runtime.Scheme, obj client.Object) string {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return "unknown"
	}
	return gvk.Kind
}

func describe(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}
