package install

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/contract/names"
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

// Converts tells whether a standard definition is converted by the Service of an operator in a namespace: one that was handed over, and that whoever
// owns Cluster API on this cluster hasn't replaced yet.
func Converts(crd *apiextensionsv1.CustomResourceDefinition, namespace string) bool {
	if !translate.InDomain(crd.Spec.Group) || translate.IsPrivate(crd.Spec.Group) {
		return false
	}
	conv := crd.Spec.Conversion
	if conv == nil || conv.Webhook == nil || conv.Webhook.ClientConfig == nil || conv.Webhook.ClientConfig.Service == nil {
		return false
	}
	service := conv.Webhook.ClientConfig.Service
	return service.Namespace == namespace && service.Name == config.ConversionService
}

// convertedHere are the names of such definitions. Their objects need the operator's conversion, and it the right to write its CA into them.
func convertedHere(ctx context.Context, c client.Client, namespace string) ([]string, error) {
	names, err := config.ConvertedNames(false)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
		}
		if Converts(crd, namespace) {
			found = append(found, name)
		}
	}
	return found, nil
}

// EndConversion makes a definition that Converts do without our webhook, before that goes: with it gone, the API server could read no object by
// another version than the stored one, and so neither collect garbage nor empty a namespace. Other versions are served no longer; nobody
// could convert them. Field managers don't show us afterwards.
func EndConversion(ctx context.Context, c client.Client, name, namespace string) error {
	// The API server writes the status of definitions at any time, so that a conflict is likely.
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return endConversion(ctx, c, name, namespace) })
}

func endConversion(ctx context.Context, c client.Client, name, namespace string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return ignoreMissing(err, name)
	}
	if !Converts(crd, namespace) {
		return nil // its owner came first
	}
	withoutConversion(crd)
	if err := c.Update(ctx, crd, client.FieldOwner(names.HypershiftOperator)); err != nil {
		return ignoreMissing(err, name)
	}
	meta := &metav1.PartialObjectMetadata{ObjectMeta: crd.ObjectMeta}
	meta.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	patch := release(meta)
	if patch == nil {
		return nil
	}
	return ignoreMissing(c.Patch(ctx, meta, client.RawPatch(types.MergePatchType, patch)), name)
}

func ignoreMissing(err error, name string) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("taking our conversion out of CustomResourceDefinition %s: %w", name, err)
}

// withoutConversion serves the stored version alone, and drops the labels of contracts by which Cluster API would look for others.
func withoutConversion(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		v.Served = v.Storage
		if v.Storage {
			continue
		}
		maps.DeleteFunc(crd.Labels, func(key, version string) bool {
			return strings.HasPrefix(key, translate.Standard+"/v") && version == v.Name
		})
	}
}

// release is the patch that takes everything of ours from a standard definition's metadata, nil if there is nothing or it is none.
func release(crd *metav1.PartialObjectMetadata) []byte {
	_, group, _ := strings.Cut(crd.Name, ".")
	if !translate.InDomain(group) || translate.IsPrivate(group) {
		return nil
	}
	kept := slices.DeleteFunc(slices.Clone(crd.ManagedFields), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == connect.FieldOwner || e.Manager == names.HypershiftOperator
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
