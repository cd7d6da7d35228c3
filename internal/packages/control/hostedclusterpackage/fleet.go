package hostedclusterpackage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/packages/control/rollout"
)

var (
	namespaceKind   = corev1.SchemeGroupVersion.WithKind("Namespace")
	hostedListKind  = hyperv1.GroupVersion.WithKind("HostedClusterList")
	errNotTheNewest = fmt.Errorf("the HostedClusterPackage was changed meanwhile: %w", outcome.ErrStale)
)

// parallel is how many Packages are read or written at the same time, so that a wave does not wait for answers one after the other.
const parallel = 16

// fleet is the rollout.Fleet of one pass.
type fleet struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	// owner as observed; Record brings it up to date.
	owner *packagesv1.HostedClusterPackage
	view  view
	// good is what is applied where the newest is taken back.
	good template
	// applied is what is known of Packages that were changed.
	applied *applied
	// refusals are what could not be written a moment ago.
	refusals *refusals
	// matching are the clusters that the selector matches, as names.BackReference, by their control-plane namespaces; read when first asked for.
	matching map[string][]string
}

// Look implements rollout.Fleet.
func (f *fleet) Look(ctx context.Context, namespaces []string) (map[string]rollout.Package, error) {
	found := make([]*packagesv1.Package, len(namespaces))
	err := errors.Join(atOnce(len(namespaces), func(i int) error {
		p := &packagesv1.Package{}
		err := f.live.Get(ctx, types.NamespacedName{Namespace: namespaces[i], Name: f.owner.Name}, p)
		if err != nil {
			if ignoreNotFound(err) == nil {
				return nil
			}
			return fmt.Errorf("reading package %s/%s: %w", namespaces[i], f.owner.Name, err)
		}
		found[i] = p
		return nil
	})...)
	out := map[string]rollout.Package{}
	for _, p := range found {
		if p != nil {
			out[p.Namespace] = f.view.packageOf(p)
		}
	}
	return out, err
}

// atOnce runs do for the numbers below n, some at the same time. A failure of one keeps no other from being tried; there is an error, or nil, for each.
func atOnce(n int, do func(i int) error) []error {
	errs := make([]error, n)
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error {
			errs[i] = do(i)
			return nil // that of one stops nobody
		})
	}
	_ = group.Wait() // always nil
	return errs
}

func (f *fleet) lookForClusters(ctx context.Context) error {
	selector, err := selectorOf(f.owner)
	if err != nil {
		return err
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(hostedListKind)
	if err := f.live.List(ctx, &list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("listing hosted clusters: %w", err)
	}
	f.matching = map[string][]string{}
	for i := range list.Items {
		ns := names.ControlPlaneNamespace(list.Items[i].Namespace, list.Items[i].Name)
		f.matching[ns] = append(f.matching[ns], names.BackReference(&list.Items[i]))
	}
	return nil
}

// isMatched tells whether the selector matches the cluster that a control-plane namespace is of.
func (f *fleet) isMatched(ctx context.Context, name string) (bool, error) {
	if f.matching == nil {
		if err := f.lookForClusters(ctx); err != nil {
			return false, err
		}
	}
	if len(f.matching[name]) == 0 {
		return false, nil
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(namespaceKind)
	if err := f.live.Get(ctx, types.NamespacedName{Name: name}, ns); ignoreNotFound(err) != nil {
		return false, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	owner := ns.Annotations[hyperv1.HostedClusterAnnotation]
	return owner == "" || slices.Contains(f.matching[name], owner), nil
}
