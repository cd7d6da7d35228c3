package get

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/why"
)

// pageSize bounds one answer of the API server.
const pageSize = 500

// kinds are what can be listed.
var kinds = []kind{
	{
		name: "clusters", aliases: []string{"cluster", "hostedclusters", "hostedcluster", "hc", "hcs"}, short: "hosted clusters", namespaced: true,
		columns: []string{"version", "workers"}, wide: []string{"platform", "available", "endpoint", "release"},
		list: clusters, completes: hyperv1.GroupVersion.WithKind("HostedClusterList"),
	},
	{
		name: "nodepools", aliases: []string{"nodepool", "np", "nps"}, short: "NodePools", namespaced: true, ofCluster: true,
		columns: []string{"cluster", "ready", "version"}, wide: []string{"platform", "upgrade", "autoscaling", "release"},
		list: nodePools, completes: hyperv1.GroupVersion.WithKind("NodePoolList"),
	},
	{
		name: "machines", aliases: []string{"machine", "ma"}, short: "machines of hosted clusters, whichever group they are stored in", namespaced: true, ofCluster: true,
		columns: []string{"cluster", "nodePool", "phase", "node", "version"}, wide: []string{"address", "providerID"},
		list: machines,
	},
	{
		name: "packages", aliases: []string{"package", "pkg"}, short: "Packages", namespaced: true,
		columns: []string{"revision"}, wide: []string{"image"},
		list: packages, completes: packagesv1.GroupVersion.WithKind("PackageList"),
	},
	{
		name: "rollouts", aliases: []string{"rollout", "hostedclusterpackages", "hostedclusterpackage", "hcpkg"}, short: "rollouts of HostedClusterPackages over hosted clusters",
		columns: []string{"updated", "available", "progressed"}, wide: []string{"image", "strategy"},
		list: rollouts, completes: packagesv1.GroupVersion.WithKind("HostedClusterPackageList"),
	},
}

// each lists objects page by page, or reads the one that q names. list is empty, and one an object of its kind.
func (q query) each(ctx context.Context, what string, list client.ObjectList, one client.Object, namespace string, take func(client.Object) error) error {
	if q.name != "" {
		err := q.Get(ctx, client.ObjectKey{Namespace: namespace, Name: q.name}, one)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("reading %s %s: %w", what, q.name, unknownKind(err))
		case !q.selector.Matches(labels.Set(one.GetLabels())):
			return nil
		}
		return take(one)
	}
	for err := range read.Pages(ctx, q, list, cmp.Or(q.pageSize, pageSize), client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: q.selector}) {
		if err == nil {
			err = meta.EachListItem(list, func(obj runtime.Object) error { return take(obj.(client.Object)) })
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", what, unknownKind(err))
		}
	}
	return nil
}

// unknownKind says what to do about a management cluster without our definitions.
func unknownKind(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("%w; run `hypershift install` first", err)
	}
	return err
}

func item(kind, resource string, obj client.Object, f why.Finding) Item {
	created := obj.GetCreationTimestamp()
	return Item{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), Finding: f, Created: &created, resource: resource, Details: map[string]string{}}
}

func clusters(ctx context.Context, q query) ([]Item, error) {
	have, want := map[string]int32{}, map[string]int32{}
	pools := q
	pools.name, pools.selector = "", labels.Everything()
	err := pools.each(ctx, "NodePools", &hyperv1.NodePoolList{}, nil, q.namespace, func(obj client.Object) error {
		np := obj.(*hyperv1.NodePool)
		of := np.Namespace + "/" + np.Spec.ClusterName
		have[of] += np.Status.Replicas
		want[of] += ptr.Deref(np.Spec.Replicas, np.Status.Replicas)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var items []Item
	err = q.each(ctx, "HostedClusters", &hyperv1.HostedClusterList{}, &hyperv1.HostedCluster{}, q.namespace, func(obj client.Object) error {
		hc := obj.(*hyperv1.HostedCluster)
		i := item("HostedCluster", "hostedcluster.hypershift.openshift.io", hc, why.Of(hc, q.now))
		key := hc.Namespace + "/" + hc.Name
		i.Details["version"] = VersionOf(hc)
		i.Details["workers"] = fmt.Sprintf("%d/%d", have[key], want[key])
		i.Details["platform"] = string(hc.Spec.Platform.Type)
		i.Details["release"] = hc.Spec.Release.Image
		if c := meta.FindStatusCondition(hc.Status.Conditions, hyperv1.HostedClusterAvailable); c != nil {
			i.Details["available"] = string(c.Status)
		}
		if e := hc.Status.ControlPlaneEndpoint; e.Host != "" {
			i.Details["endpoint"] = fmt.Sprintf("%s:%d", e.Host, e.Port)
		}
		items = append(items, i)
		return nil
	})
	return items, err
}

// VersionOf is the version that a control plane has, and where it goes: "1.35.0→1.36.3".
func VersionOf(hc *hyperv1.HostedCluster) string {
	v := hc.Status.Version
	if v == nil {
		return ""
	}
	present := ""
	for _, entry := range v.History {
		if entry.State == configv1.CompletedUpdate { // one that was given up has a time of its end, too
			present = entry.Version
			break
		}
	}
	switch {
	case present == v.Desired.Version:
		return present
	case present == "":
		return "→" + v.Desired.Version
	}
	return present + "→" + v.Desired.Version
}

func nodePools(ctx context.Context, q query) ([]Item, error) {
	var items []Item
	err := q.each(ctx, "NodePools", &hyperv1.NodePoolList{}, &hyperv1.NodePool{}, q.namespace, func(obj client.Object) error {
		np := obj.(*hyperv1.NodePool)
		if q.cluster != "" && np.Spec.ClusterName != q.cluster {
			return nil
		}
		i := item("NodePool", "nodepool.hypershift.openshift.io", np, why.Of(np, q.now))
		i.Cluster = np.Spec.ClusterName
		i.Details["cluster"] = np.Spec.ClusterName
		i.Details["ready"] = fmt.Sprintf("%d/%d", np.Status.Replicas, ptr.Deref(np.Spec.Replicas, np.Status.Replicas))
		i.Details["version"] = np.Status.Version
		i.Details["platform"] = string(np.Spec.Platform.Type)
		i.Details["upgrade"] = string(np.Spec.Management.UpgradeType)
		i.Details["release"] = np.Spec.Release.Image
		if a := np.Spec.AutoScaling; a != nil {
			i.Details["autoscaling"] = fmt.Sprintf("%d-%d", ptr.Deref(a.Min, 0), a.Max)
		}
		items = append(items, i)
		return nil
	})
	if err == nil && len(items) == 0 && q.cluster != "" && q.name == "" {
		err = owners(ctx, q, func(*hyperv1.HostedCluster) error { return nil })
	}
	return items, err
}

func packages(ctx context.Context, q query) ([]Item, error) {
	var items []Item
	err := q.each(ctx, "Packages", &packagesv1.PackageList{}, &packagesv1.Package{}, q.namespace, func(obj client.Object) error {
		p := obj.(*packagesv1.Package)
		i := item("Package", "package.package-operator.run", p, why.Of(p, q.now))
		i.Details["revision"] = strconv.FormatInt(p.Status.Revision, 10)
		i.Details["image"] = p.Spec.Image
		items = append(items, i)
		return nil
	})
	return items, err
}

func rollouts(ctx context.Context, q query) ([]Item, error) {
	var items []Item
	err := q.each(ctx, "HostedClusterPackages", &packagesv1.HostedClusterPackageList{}, &packagesv1.HostedClusterPackage{}, "", func(obj client.Object) error {
		p := obj.(*packagesv1.HostedClusterPackage)
		i := item("HostedClusterPackage", "hostedclusterpackage.package-operator.run", p, why.Of(p, q.now))
		of := func(n int32) string { return fmt.Sprintf("%d/%d", n, p.Status.TotalPackages) }
		i.Details["updated"], i.Details["available"], i.Details["progressed"] = of(p.Status.UpdatedPackages), of(p.Status.AvailablePackages), of(p.Status.ProgressedPackages)
		i.Details["image"] = p.Spec.Template.Spec.Image
		i.Details["strategy"] = "Instant"
		if r := p.Spec.Strategy.RollingUpgrade; r != nil && p.Spec.Strategy.Instant == nil {
			i.Details["strategy"] = fmt.Sprintf("RollingUpgrade, %d at a time", r.MaxUnavailable)
		}
		items = append(items, i)
		return nil
	})
	return items, err
}
