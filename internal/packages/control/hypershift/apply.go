package hypershift

import (
	"context"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/control/hostedclusterpackage"
)

// writePackage creates the Package, or gives it the spec that it shall have. One of this name that was made by somebody else is theirs.
func (r *Reconciler) writePackage(ctx context.Context, have, want *v1alpha1.Package) error {
	if have == nil {
		if err := r.Client.Create(ctx, want, client.FieldOwner(v1alpha1.FieldOwner)); err != nil {
			return fmt.Errorf("creating Package %s: %w", client.ObjectKeyFromObject(want), err)
		}
		return nil
	}
	if hostedclusterpackage.SameSpec(have.Spec, want.Spec) {
		return nil
	}
	data, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/resourceVersion", "value": have.ResourceVersion},
		{"op": "replace", "path": "/spec", "value": want.Spec},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	err = r.Client.Patch(ctx, have.DeepCopy(), client.RawPatch("application/json-patch+json", data), client.FieldOwner(v1alpha1.FieldOwner))
	if err != nil {
		return fmt.Errorf("updating Package %s: %w", client.ObjectKeyFromObject(want), err)
	}
	return nil
}
