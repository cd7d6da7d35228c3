package reencryption

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// migrationKinds are the APIs of storage version migrators, the one to prefer first: that of kube-controller-manager, and
// that of the stand-alone migrator, which OpenShift has.
var migrationKinds = []schema.GroupVersionKind{
	{Group: "storagemigration.k8s.io", Version: "v1beta1", Kind: "StorageVersionMigration"},
	{Group: "migration.k8s.io", Version: "v1alpha1", Kind: "StorageVersionMigration"},
}

// The API may be served while nobody works on it, so that a migration is given up and this process does it.
const (
	// startPatience is how long a migration may take to be looked at.
	startPatience = 5 * time.Minute
	// workPatience is how long it may take altogether. A million Secrets take about half of it.
	workPatience = 2 * time.Hour
)

// verdict is what a migration says of itself.
type verdict int

const (
	notServed verdict = iota // there is no migrator, or none that answers
	running
	succeeded
	failed
)

// migrate asks the hosted cluster's migrator to write all Secrets again.
func (r *Reconciler) migrate(ctx context.Context, target, rotation string) (verdict, error) {
	for _, kind := range migrationKinds {
		v, err := r.migrateWith(ctx, kind, target, rotation)
		if v != notServed || err != nil {
			return v, err
		}
	}
	return notServed, nil
}

func (r *Reconciler) migrateWith(ctx context.Context, kind schema.GroupVersionKind, target, rotation string) (verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(kind)
	err := r.Hosted.Get(ctx, client.ObjectKey{Name: migrationName}, live)
	switch {
	case meta.IsNoMatchError(err):
		return notServed, nil
	case apierrors.IsNotFound(err):
		return r.start(ctx, kind, target, rotation)
	case err != nil:
		return notServed, fmt.Errorf("reading the StorageVersionMigration of the hosted cluster: %w", err)
	case live.GetAnnotations()[rotationAnnotation] != rotation || live.GetAnnotations()[writeKeyAnnotation] != writeKey(target):
		uid := live.GetUID()
		if err := r.Hosted.Delete(ctx, live, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return notServed, fmt.Errorf("deleting the StorageVersionMigration of another rotation: %w", err)
		}
		return r.start(ctx, kind, target, rotation)
	}
	age := r.Clock.Since(live.GetCreationTimestamp().Time)
	switch v := said(live); {
	case v == succeeded || v == failed:
		return v, nil
	case age > workPatience || v != running && age > startPatience:
		return notServed, nil
	}
	return running, nil
}

// start creates the migration. A group that is gone since we looked answers that it does not know the resource.
func (r *Reconciler) start(ctx context.Context, kind schema.GroupVersionKind, target, rotation string) (verdict, error) {
	resource := map[string]any{"group": "", "resource": "secrets"}
	if kind.Group == "migration.k8s.io" {
		resource["version"] = "v1"
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"resource": resource}}}
	obj.SetGroupVersionKind(kind)
	obj.SetName(migrationName)
	obj.SetAnnotations(map[string]string{rotationAnnotation: rotation, writeKeyAnnotation: writeKey(target)})
	err := r.Hosted.Create(ctx, obj, client.FieldOwner(fieldOwner))
	switch {
	case apierrors.IsNotFound(err):
		return notServed, nil
	case err != nil && !apierrors.IsAlreadyExists(err): // the old one is still going away: read next time
		return notServed, fmt.Errorf("creating the StorageVersionMigration in the hosted cluster: %w", err)
	}
	return running, nil
}

// said reads the conditions, which the tenant can write: nothing of them but the verdict is used.
func said(migration *unstructured.Unstructured) verdict {
	conditions, _, _ := unstructured.NestedSlice(migration.Object, "status", "conditions")
	v := notServed
	for _, c := range conditions {
		cond, ok := c.(map[string]any)
		if !ok || cond["status"] != "True" {
			continue
		}
		switch cond["type"] {
		case "Succeeded":
			return succeeded
		case "Failed":
			v = failed
		case "Running":
			if v != failed {
				v = running
			}
		}
	}
	return v
}
