// Package patch writes the small changes that a reconciler makes to an object that others write, too: finalizers and status.
package patch

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// EnsureFinalizer stores a finalizer on obj and says whether it had to. The patch carries the resourceVersion, because a
// merge patch replaces the whole list and would drop a finalizer that somebody added since obj was read.
func EnsureFinalizer(ctx context.Context, c client.Client, obj client.Object, name string) (bool, error) {
	if controllerutil.ContainsFinalizer(obj, name) {
		return false, nil
	}
	before := obj.DeepCopyObject().(client.Object)
	controllerutil.AddFinalizer(obj, name)
	if err := c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("adding finalizer %s to %s: %w", name, client.ObjectKeyFromObject(obj), err)
	}
	return true, nil
}

// RemoveFinalizer takes a finalizer off obj. An object without it, or one that is gone, is no error.
func RemoveFinalizer(ctx context.Context, c client.Client, obj client.Object, name string) error {
	if !controllerutil.ContainsFinalizer(obj, name) {
		return nil
	}
	before := obj.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(obj, name)
	err := c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing finalizer %s from %s: %w", name, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// Status writes the difference between two states of an object's status, and nothing when they are equal.
//
// The patch carries the resourceVersion of before: conditions are a list, and a patch of a list that somebody else
// changed in between would undo that change. The caller gets the conflict and tries again from a fresh read.
// An object that is gone is no error.
func Status(ctx context.Context, c client.Client, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	difference, err := statusPatch(before, after)
	if difference == nil || err != nil {
		return err
	}
	if err := c.Status().Patch(ctx, after, difference); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patching status of %s: %w", client.ObjectKeyFromObject(after), err)
	}
	return nil
}
