package hostedclusterpackage

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/control/environment"
	"hcp.internal/platform/internal/packages/control/rollout"
	"hcp.internal/platform/internal/pause"
)

// Observe reads what a rollout rests on, for a forecast: as the controller does, and without writing anything.
func Observe(ctx context.Context, c client.Reader, owner *packagesv1.HostedClusterPackage) (rollout.Observed, error) {
	hash, err := templateOf(owner).hash()
	if err != nil {
		return rollout.Observed{}, err
	}
	v := view{newest: templateOf(owner), hash: hash}
	if owner.UID != "" {
		// Of the operator's namespace it knows nothing; the label is enough to find the history.
		history, err := History(ctx, c, metav1.NamespaceAll, owner)
		if err != nil {
			return rollout.Observed{}, err
		}
		v.completed = proven(history, hash)
		if good := lastGood(history, hash); good >= 0 && !v.completed {
			v.good = &history[good].Spec
		}
	}
	return observe(ctx, c, owner, v)
}

// view is what Packages are compared with.
type view struct {
	newest template
	hash   string
	// good is what to return to when newest fails; nil when there is none, and when newest was completed.
	good      *packagesv1.PackageSpec
	completed bool
	// fresh tells that a Package is not older than our last change of it; nil when that is not known.
	fresh func(*packagesv1.Package) bool
	// refusals are what could not be written a moment ago; nil when that is not known.
	refusals *refusals
	now      time.Time
}

func observe(ctx context.Context, c client.Reader, owner *packagesv1.HostedClusterPackage, v view) (rollout.Observed, error) {
	in := rollout.Observed{Settings: settings(owner), Packages: map[string]rollout.Package{}, Processing: owner.Status.Processing}
	in.Settings.HasGood, in.Settings.Completed = v.good != nil, v.completed
	selector, err := selectorOf(owner)
	if err != nil {
		return in, err
	}
	var clusters hyperv1.HostedClusterList
	if err := c.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("listing hosted clusters: %w", err)
	}
	namespaces, err := namespacesOf(ctx, c)
	if err != nil {
		return in, err
	}
	in.Packages, in.Refused = make(map[string]rollout.Package, len(clusters.Items)), map[string]string{}
	in.Clusters = make([]rollout.Cluster, 0, len(clusters.Items))
	deselected := map[string]bool{}   // control-plane namespaces
	generations := map[string]int64{} // of Packages
	matched := make(map[string]bool, len(clusters.Items))
	for i := range clusters.Items {
		cluster := clusterOf(&clusters.Items[i], in.Settings.LabelKey, namespaces)
		if owner := namespaces[cluster.Namespace].owner; owner != "" && owner != names.BackReference(&clusters.Items[i]) {
			continue // two names may give one namespace: it is refused, and its labels must not speak for the other one's Package
		}
		if !selector.Matches(labels.Set(clusters.Items[i].Labels)) {
			deselected[cluster.Namespace] = !cluster.Leaving
			continue
		}
		matched[cluster.Namespace] = true
		in.Clusters = append(in.Clusters, cluster)
	}
	var packages packagesv1.PackageList
	if err := c.List(ctx, &packages, client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("listing packages: %w", err)
	}
	for i := range packages.Items {
		p := &packages.Items[i]
		switch {
		case p.Name == owner.Name && matched[p.Namespace]:
			in.Packages[p.Namespace], generations[p.Namespace] = v.packageOf(p), p.Generation
		case p.DeletionTimestamp.IsZero() && metav1.IsControlledBy(p, owner):
			orphan := v.packageOf(p)
			orphan.Deselected = deselected[p.Namespace]
			in.Orphans = append(in.Orphans, orphan)
		}
	}
	for ns := range matched {
		if why := v.refusals.of(ns, v.hash, generations[ns], v.now); why != "" {
			in.Refused[ns] = why
		}
	}
	return in, nil
}

func settings(owner *packagesv1.HostedClusterPackage) rollout.Settings {
	s := rollout.Settings{Name: owner.Name, Generation: owner.Generation, MaxUnavailable: rollout.Unlimited}
	s.Options, _ = rollout.ParseOptions(owner.Annotations) // reported as an event; what can't be read is off
	if rolling := owner.Spec.Strategy.RollingUpgrade; rolling != nil {
		s.Tolerated = rolling.MaxUnavailable
		if owner.Spec.Strategy.Instant == nil {
			s.MaxUnavailable = rolling.MaxUnavailable
		}
	}
	if p := owner.Spec.Partition; p != nil {
		s.Partitioned, s.LabelKey = true, p.LabelKey
		if p.Order != nil && p.Order.AlphanumericAsc == nil {
			s.Static = p.Order.Static
		}
	}
	return s
}

func selectorOf(owner *packagesv1.HostedClusterPackage) (labels.Selector, error) {
	if owner.Spec.HostedClusterSelector == nil {
		return labels.Everything(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(owner.Spec.HostedClusterSelector)
	if err != nil {
		return nil, fmt.Errorf("spec.hostedClusterSelector: %w", err)
	}
	return selector, nil
}

// namespace is what matters of one.
type namespace struct {
	leaving bool
	// owner is the HostedCluster that it says it is of, as names.BackReference; empty: it says nothing.
	owner string
}

// namespacesOf are all namespaces by name.
func namespacesOf(ctx context.Context, c client.Reader) (map[string]namespace, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(namespaceKind.GroupVersion().WithKind("NamespaceList"))
	if err := c.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	out := make(map[string]namespace, len(list.Items))
	for i := range list.Items {
		out[list.Items[i].Name] = namespace{!list.Items[i].DeletionTimestamp.IsZero(), list.Items[i].Annotations[hyperv1.HostedClusterAnnotation]}
	}
	return out, nil
}

func clusterOf(hc *hyperv1.HostedCluster, labelKey string, namespaces map[string]namespace) rollout.Cluster {
	c := rollout.Cluster{
		Name: types.NamespacedName{Namespace: hc.Namespace, Name: hc.Name}, Namespace: names.ControlPlaneNamespace(hc.Namespace, hc.Name),
		Label: hc.Labels[labelKey],
	}
	ns, exists := namespaces[c.Namespace]
	switch {
	case !hc.DeletionTimestamp.IsZero():
		c.Unready, c.Closed, c.Leaving = "is being deleted", true, true
	case !exists:
		c.Unready, c.Closed = "has no control-plane namespace "+c.Namespace, true
	case ns.leaving:
		c.Unready, c.Closed = "has its control-plane namespace "+c.Namespace+" being deleted", true
	case pause.Asleep(hc.Status.Conditions):
		c.Unready, c.Closed, c.Asleep = "hibernates", true, true
	case !conditions.IsTrue(hc.Status.Conditions, string(hyperv1.HostedClusterAvailable)):
		c.Unready = "is not Available"
	}
	return c
}

// packageOf is what matters of a Package. Conditions count if they are about its present generation.
func (v view) packageOf(p *packagesv1.Package) rollout.Package {
	is := func(kind string, status metav1.ConditionStatus) bool {
		c := conditions.Current(p.Status.Conditions, kind, p.Generation)
		return c != nil && c.Status == status
	}
	// What is available stays so until somebody reports otherwise, but it may be down already.
	reported := conditions.Get(p.Status.Conditions, packagesv1.ConditionAvailable)
	out := rollout.Package{
		UID: p.UID, Namespace: p.Namespace,
		Current:    SameSpec(p.Spec, v.newest.Spec),
		Unlabelled: !contains(p.Labels, v.newest.Labels) || !contains(p.Annotations, v.newest.Annotations) || hasLeftovers(p, v.newest),
		Good:       v.good != nil && SameSpec(p.Spec, *v.good),
		Available:  is(packagesv1.ConditionAvailable, metav1.ConditionTrue),
		Progressed: is(packagesv1.ConditionProgressing, metav1.ConditionFalse) &&
			is(packagesv1.ConditionUnpacked, metav1.ConditionTrue),
		Unreported: reported != nil && reported.Status == metav1.ConditionTrue && reported.ObservedGeneration != p.Generation,
		Paused:     is(packagesv1.ConditionPaused, metav1.ConditionTrue),
		Held:       p.Spec.Paused && !v.newest.Spec.Paused,
		Returned:   v.hash != "" && p.Annotations[packagesv1.RolloutReturnedAnnotation] == v.hash,
		Fresh:      v.fresh != nil && v.fresh(p),
		AppliedAt:  appliedAt(p),
	}
	if out.Environment = environment.Wanted(p.Status.Conditions); out.Environment != "" {
		if p.Annotations[packagesv1.RolloutEnvironmentAnnotation] == out.Environment {
			out.Progressed = false // it was told to, and what it says is about the time before
		} else {
			out.Current = false
		}
	}
	for _, kind := range []string{packagesv1.ConditionAvailable, packagesv1.ConditionProgressing} {
		if c := conditions.Get(p.Status.Conditions, kind); c != nil && c.LastTransitionTime.After(out.SettledAt) {
			out.SettledAt = c.LastTransitionTime.Time
		}
	}
	return out
}

// appliedAt is when we last changed a Package, as the API server remembers; zero when it doesn't.
func appliedAt(p client.Object) time.Time {
	if f := Entry(p); f != nil {
		return f.Time.Time
	}
	return time.Time{}
}

// Entry is what the API server remembers of our last change of a Package, nil when nothing. A cache must keep its time: a package that is available as soon
// as it is applied has no other, and groups that soak go by it.
func Entry(p metav1.Object) *metav1.ManagedFieldsEntry {
	for _, f := range p.GetManagedFields() {
		if f.Manager == string(FieldOwner) && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "" && f.Time != nil {
			return &f
		}
	}
	return nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// read is the HostedClusterPackage and the hash of its template; nil when it is gone. For a pass, the cache's state or our own last write is new enough:
// if it isn't the newest, the API server refuses the pass's first write. Only a template that isn't in memory yet is read live, as it is going to be
// stored as the newest revision: after a start of the process, the cache's may be older than the one that is stored.
func (r *Reconciler) read(ctx context.Context, name types.NamespacedName) (*packagesv1.HostedClusterPackage, string, error) {
	owner := &packagesv1.HostedClusterPackage{}
	if err := r.Client.Get(ctx, name, owner); err != nil {
		if ignoreNotFound(err) == nil {
			r.memory.forget(name.Name)
		}
		return nil, "", ignoreNotFound(err)
	}
	owner = r.memory.newest(owner)
	hash, err := templateOf(owner).hash()
	if _, known := r.memory.get(owner, hash); known || err != nil {
		return owner, hash, err
	}
	owner = &packagesv1.HostedClusterPackage{}
	if err := r.Live.Get(ctx, name, owner); err != nil {
		return nil, "", ignoreNotFound(err)
	}
	r.memory.saw(owner)
	hash, err = templateOf(owner).hash()
	return owner, hash, err
}

// readTimes finds out when the Packages that are in flight were changed, which caches don't keep. Only deadlines need it.
func (r *Reconciler) readTimes(ctx context.Context, in *rollout.Observed, changes *applied) error {
	if in.Settings.Options.Deadline == 0 {
		return nil
	}
	var unknown []packagesv1.HostedClusterPackageRefStatus
	for _, ref := range in.Processing {
		p, ok := in.Packages[ref.Namespace]
		if !ok || p.UID != ref.UID || p.Available && p.Progressed {
			continue
		}
		if p.AppliedAt = changes.at(ref.Namespace, ref.UID); p.AppliedAt.IsZero() {
			unknown = append(unknown, ref)
			continue
		}
		in.Packages[ref.Namespace] = p
	}
	times := make([]time.Time, len(unknown))
	err := errors.Join(atOnce(len(unknown), func(i int) error {
		ref, obj := unknown[i], &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(packagesv1.GroupVersion.WithKind("Package"))
		if err := r.Live.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, obj); ignoreNotFound(err) != nil {
			return fmt.Errorf("reading package %s/%s: %w", ref.Namespace, ref.Name, err)
		}
		times[i] = appliedAt(obj)
		return nil
	})...)
	for i, ref := range unknown {
		p := in.Packages[ref.Namespace]
		p.AppliedAt = times[i]
		in.Packages[ref.Namespace] = p
	}
	return err
}
