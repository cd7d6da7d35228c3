package objecttemplate

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/packages/author/gotemplate"
)

// collect reads the sources. It says whether an optional one is missing.
func (r *Reconciler) collect(ctx context.Context, ot *v1alpha1.ObjectTemplate) (map[string]any, bool, error) {
	config, missing, values := map[string]any{}, false, gotemplate.NewPaths()
	for _, s := range ot.Spec.Sources {
		source := &unstructured.Unstructured{}
		source.SetGroupVersionKind(schema.FromAPIVersionAndKind(s.APIVersion, s.Kind))
		source.SetNamespace(s.Namespace)
		source.SetName(s.Name)
		found, err := r.placed(ot, source)
		switch {
		case err != nil:
			return nil, false, err
		case found.noKind && s.Optional: // no kind, no object
			missing = true
			continue
		case found.noKind:
			return nil, false, sourceError(source, errors.New(found.problem), r.RetryInterval)
		case found.problem != "":
			return nil, false, sourceError(source, errors.New(found.problem), 0)
		}
		err = r.Live.Get(ctx, client.ObjectKeyFromObject(source), source)
		switch {
		case apierrors.IsNotFound(err) && s.Optional:
			missing = true
			continue
		case apierrors.IsNotFound(err):
			return nil, false, sourceError(source, err, r.RetryInterval)
		case err != nil:
			return nil, false, fmt.Errorf("reading source %s %s: %w", s.Kind, s.Name, err)
		}
		if source.GetLabels()[v1alpha1.CacheLabel] != v1alpha1.CacheLabelValue {
			if err := r.label(ctx, source); err != nil {
				return nil, false, err
			}
		}
		if err := copyItems(values, s.Items, source, config); err != nil {
			return nil, false, sourceError(source, err, 0)
		}
	}
	return config, missing, nil
}

func sourceError(source *unstructured.Unstructured, err error, after time.Duration) error {
	return &invalid{
		reason: v1alpha1.ReasonSourceError, after: after,
		err: fmt.Errorf("for source %s %s: %w", source.GetKind(), client.ObjectKeyFromObject(source), err),
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
