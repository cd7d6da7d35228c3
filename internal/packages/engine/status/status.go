// Package status writes the status and finalizers of objects that have one writer, with as little as an API server needs to hear, and keeps that
// writer from working on a state older than what it wrote itself.
package status

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/fresh"
)

// Writer writes the status of objects of a kind. It is safe for concurrent use.
type Writer struct {
	// Client writes.
	Client client.Client
	// Kind of the objects.
	Kind schema.GroupVersionKind

	// written is a mark of the last write by key. A cache that is behind would make the next pass compare with what is no
	// longer there, and leave it so.
	written sync.Map
}

// mark is a version that was written, and how often a cache did not have it yet.
type mark struct {
	version string
	waits   int
}

const (
	// firstWait is how long a pass waits for a cache to show what the last one wrote, which takes milliseconds.
	firstWait = 20 * time.Millisecond
	// longestWait is what that becomes by doubling, when a watch lags behind.
	longestWait = time.Second
)

// Wait is how long to wait for a cache that is behind what was written last; 0 when it is not. The time grows with each call.
func (w *Writer) Wait(obj metav1.Object) time.Duration {
	key := keyOf(obj)
	found, ok := w.written.Load(key)
	if !ok {
		return 0
	}
	last := found.(mark)
	if fresh.Older(obj.GetResourceVersion(), last.version) {
		// Another goroutine has no business with this key; if it had, one wait would be a little shorter.
		w.written.CompareAndSwap(key, last, mark{last.version, last.waits + 1})
		return min(longestWait, firstWait<<min(last.waits, 10))
	}
	w.written.Delete(key)
	return 0
}

// Wrote notes that another part of the object was written, too.
func (w *Writer) Wrote(obj metav1.Object, resourceVersion string) {
	w.written.Store(keyOf(obj), mark{version: resourceVersion})
}

// Forget drops what is known about an object that is gone.
func (w *Writer) Forget(key client.ObjectKey) { w.written.Delete(key) }

func keyOf(obj metav1.Object) client.ObjectKey {
	return client.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Patch writes the fields in which two states of an object's status differ, and nothing when none do. Fields that the Go type doesn't know
// stay. The object must not have changed since it was read; if it has, the error is a conflict. An object that is gone is no error.
func (w *Writer) Patch(ctx context.Context, obj metav1.Object, before, after any) error {
	if equality.Semantic.DeepEqual(before, after) { // the rule; encoding both takes many times longer
		return nil
	}
	difference, err := differences(before, after)
	if err != nil || len(difference) == 0 {
		return err
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": obj.GetResourceVersion()}, "status": difference})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	answer.SetGroupVersionKind(w.Kind)
	if err := w.Client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, data)); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("patching status of %s: %w", keyOf(obj), err)
	}
	obj.SetResourceVersion(answer.ResourceVersion)
	w.written.Store(keyOf(obj), mark{version: answer.ResourceVersion})
	return nil
}

// SetFinalizers replaces the finalizers of an object, if they differ. Conflicts are as of Patch; an object that is gone is an error.
func (w *Writer) SetFinalizers(ctx context.Context, obj metav1.Object, want []string) error {
	if slices.Equal(want, obj.GetFinalizers()) {
		return nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": want, "resourceVersion": obj.GetResourceVersion()}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	answer.SetGroupVersionKind(w.Kind)
	if err := w.Client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("setting finalizers of %s: %w", keyOf(obj), err)
	}
	obj.SetFinalizers(want)
	obj.SetResourceVersion(answer.ResourceVersion)
	w.written.Store(keyOf(obj), mark{version: answer.ResourceVersion})
	return nil
}

// differences are the top-level fields that changed; null stands for one that is gone.
func differences(before, after any) (map[string]json.RawMessage, error) {
	from, err := fields(before)
	if err != nil {
		return nil, err
	}
	to, err := fields(after)
	if err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	for name, value := range to {
		if !bytes.Equal(from[name], value) {
			out[name] = value
		}
	}
	for name := range from {
		if _, kept := to[name]; !kept {
			out[name] = json.RawMessage("null")
		}
	}
	return out, nil
}

func fields(status any) (map[string]json.RawMessage, error) {
	data, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encoding a status: %w", err)
	}
	out := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("decoding a status: %w", err)
	}
	return out, nil
}
