package packagestest

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Unwatched is a watch that knows nothing, so that everything is read.
type Unwatched struct{}

// Use implements the watch of an engine.
func (Unwatched) Use(context.Context, types.UID, []schema.GroupVersionKind) ([]schema.GroupVersionKind, error) {
	return nil, nil
}

// Free implements the watch of an engine.
func (Unwatched) Free(context.Context, types.UID) error { return nil }

// Get implements the watch of an engine.
func (Unwatched) Get(_ context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind.Kind}, key.Name)
}
