package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pages "hcp.internal/platform/internal/kube/read"
)

// strandedPage is how many HostedClusters are read at once.
const strandedPage = 200

// ErrStrands is returned by Run when the operator that it would install refuses the platform of a hosted cluster that is there. Nothing has been written then.
var ErrStrands = errors.New("a hosted cluster would be left without an operator")

// refuseStranding looks for hosted clusters on platform Local, which an installation has only when it is named, or on any that o's list leaves out.
func refuseStranding(ctx context.Context, c client.Client, o Options) error {
	if o.Scope == ScopeCRDs {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: hypershiftGroup, Version: "v1beta1", Kind: "HostedClusterList"})
	for err := range pages.Pages(ctx, c, list, strandedPage) {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil // the first installation
		}
		if err != nil {
			return fmt.Errorf("looking for HostedClusters: %w", err)
		}
		for _, hc := range list.Items {
			platform, _, _ := unstructured.NestedString(hc.Object, "spec", "platform", "type")
			if o.hosts(platform) {
				continue
			}
			return fmt.Errorf("%w: HostedCluster %s/%s is on platform %s: name it, as in --limit-crd-install=%s, or destroy the cluster first",
				ErrStrands, hc.GetNamespace(), hc.GetName(), platform, strings.Join(o.with(platform), ","))
		}
	}
	return nil
}

// hosts tells whether the operator takes clusters of a platform.
func (o Options) hosts(platform string) bool {
	if platform == "None" {
		return true
	}
	if len(o.Platforms) == 0 {
		return platform != localPlatform
	}
	return slices.Contains(o.Platforms, platform)
}

// with is the list of platforms to give for what o has and one more.
func (o Options) with(platform string) []string {
	if len(o.Platforms) == 0 {
		return EveryPlatform()
	}
	return append(slices.Clone(o.Platforms), platform)
}
