package install

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/capigroup/conversion"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/progress"
)

// handOver lets go of standard definitions of Cluster API that an earlier installation made, once it has no use for them: whoever owns Cluster
// API on this cluster can then apply its own without a conflict with us. The definitions stay, and what is in them: there may be objects by now that
// aren't ours.
func handOver(ctx context.Context, c client.Client, p *progress.Printer) error {
	crds := &metav1.PartialObjectMetadataList{}
	crds.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := c.List(ctx, crds); err != nil {
		return fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	for i := range crds.Items {
		crd := &crds.Items[i]
		patch := release(crd)
		if patch == nil {
			continue
		}
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		err := c.Patch(ctx, crd, client.RawPatch(types.MergePatchType, patch))
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue // somebody is at it; the next installation looks again
		}
		if err != nil {
			return fmt.Errorf("handing over CustomResourceDefinition %s: %w", crd.Name, err)
		}
		p.Printf("handed over CustomResourceDefinition %s: it isn't used here any more", crd.Name)
	}
	return nil
}

// release is the patch that takes everything of ours from a standard definition's metadata, nil if there is nothing or it is none.
func release(crd *metav1.PartialObjectMetadata) []byte {
	_, group, _ := strings.Cut(crd.Name, ".")
	if !translate.InDomain(group) || translate.IsPrivate(group) {
		return nil
	}
	kept := slices.DeleteFunc(slices.Clone(crd.ManagedFields), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == connect.FieldOwner || e.Manager == conversion.FieldOwner
	})
	if len(kept) == len(crd.ManagedFields) {
		return nil // what it says of us somebody else put there
	}
	if len(kept) == 0 {
		kept = []metav1.ManagedFieldsEntry{{}} // an empty list would leave everything as it is
	}
	meta := map[string]any{"managedFields": kept}
	for field, values := range map[string]map[string]string{"labels": crd.Labels, "annotations": crd.Annotations} {
		gone := map[string]any{}
		for key := range values {
			if prefix, _, _ := strings.Cut(key, "/"); prefix == hypershiftGroup || strings.HasSuffix(prefix, "."+hypershiftGroup) {
				gone[key] = nil
			}
		}
		if len(gone) > 0 {
			meta[field] = gone
		}
	}
	meta["resourceVersion"] = crd.ResourceVersion
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		panic(err) // strings and managed fields, which were JSON
	}
	return patch
}
