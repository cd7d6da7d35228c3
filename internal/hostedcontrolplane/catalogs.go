package hostedcontrolplane

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/olm"
	"hcp.internal/platform/internal/release"
)

const (
	// catalogPatience is how long a pass waits for one answer of a registry about a catalog, and catalogTimeout for all of them.
	catalogPatience = time.Second
	catalogTimeout  = 10 * time.Second
)

// Inspector looks at images. An answer that takes longer than its patience is release.ErrPending, and causes a pass when it comes.
type Inspector interface {
	Inspect(ctx context.Context, image string, pullSecret []byte) (*release.Info, error)
}

// observeCatalogs finds out which images of operator catalogs there are, and their digests. What fails is told by the component.
func (r *Reconciler) observeCatalogs(ctx context.Context, obs *Observed) error {
	if obs.Flavour != openShift || r.Inspector == nil {
		return nil
	}
	wctx := r.context(*obs)
	wctx.Context, wctx.Reader, wctx.HCP, wctx.UserRelease = ctx, r.Client, obs.HCP, obs.UserRelease
	wanted, err := olm.Wanted(wctx)
	if err != nil || len(wanted) == 0 {
		return nil // the component says what is wrong
	}
	secret := &corev1.Secret{}
	if _, err := r.get(ctx, obs.HCP.Namespace, names.PullSecret, secret); err != nil {
		return err
	}
	inspector, err := trustingOf(ctx, r, obs.HCP, r.Inspector)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	obs.Catalogs = map[string]component.CatalogImage{}
	for name, images := range wanted {
		obs.Catalogs[name] = findCatalog(ctx, inspector, images, secret.Data[corev1.DockerConfigJsonKey])
	}
	return nil
}

// findCatalog is the first image that is there. One that is refused counts as not there: registries that keep secrets answer so.
func findCatalog(ctx context.Context, inspector Inspector, images []string, pullSecret []byte) component.CatalogImage {
	var problem error
	for _, image := range images {
		info, err := inspector.Inspect(ctx, image, pullSecret)
		switch {
		case err == nil:
			return component.CatalogImage{Image: image, Digest: info.Digest}
		case errors.Is(err, release.ErrPending) || ctx.Err() != nil:
			return component.CatalogImage{}
		}
		if problem == nil {
			problem = err // of the one that should be there
		}
		if !errors.Is(err, release.ErrNotFound) && !errors.Is(err, release.ErrUnauthorized) {
			break
		}
	}
	return component.CatalogImage{Problem: problem}
}
