package nodetrust

import (
	"context"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
)

func (r *Reconciler) applyAll(ctx context.Context, data map[string]string) error {
	applier := apply.New(r.Hosted, names.ConfigOperator)
	for _, obj := range objects(data, r.Image) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		err := applier.Apply(ctx, obj)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}
