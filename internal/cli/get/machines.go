package get

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/why"
)

// owners are the hosted clusters that q asks about, one by one.
func owners(ctx context.Context, q query, take func(*hyperv1.HostedCluster) error) error {
	of := q
	of.name, of.selector = q.cluster, labels.Everything()
	found := false
	err := of.each(ctx, "HostedClusters", &hyperv1.HostedClusterList{}, &hyperv1.HostedCluster{}, q.namespace, func(obj client.Object) error {
		found = true
		return take(obj.(*hyperv1.HostedCluster))
	})
	if err == nil && !found && q.cluster != "" {
		return exit.With(exit.NotFound, fmt.Errorf("HostedCluster %s/%s not found: check its name and --namespace", q.namespace, q.cluster))
	}
	return err
}

func machines(ctx context.Context, q query) ([]Item, error) {
	var items []Item
	err := owners(ctx, q, func(hc *hyperv1.HostedCluster) error {
		of, err := Machines(ctx, q, hc)
		if err != nil {
			return err
		}
		for i := range of {
			m := &of[i]
			if q.name != "" && m.Name != q.name || !q.selector.Matches(labels.Set(m.Labels)) {
				continue
			}
			items = append(items, machineItem(hc, m, q.now))
		}
		return nil
	})
	return items, err
}

// Machines are those of a hosted cluster, in the order of their names, from the API group in which it has them.
func Machines(ctx context.Context, c client.Reader, hc *hyperv1.HostedCluster) ([]clusterv1.Machine, error) {
	gvk := clusterv1.GroupVersion.WithKind("MachineList")
	if hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true" {
		gvk.Group = translate.Group(gvk.Group)
	}
	var machines []clusterv1.Machine
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	namespace := names.ControlPlaneNamespace(hc.Namespace, hc.Name)
	for err := range read.Pages(ctx, c, list, pageSize, client.InNamespace(namespace)) {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil // a management cluster without Cluster API has no machines
		}
		if err != nil {
			return nil, fmt.Errorf("listing machines of HostedCluster %s/%s: %w", hc.Namespace, hc.Name, err)
		}
		for i := range list.Items {
			m := clusterv1.Machine{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &m); err != nil {
				return nil, fmt.Errorf("reading Machine %s/%s: %w", namespace, list.Items[i].GetName(), err)
			}
			machines = append(machines, m)
		}
	}
	slices.SortFunc(machines, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return machines, nil
}

// PoolOf is the name of the NodePool that a machine belongs to, empty when it has none.
func PoolOf(m *clusterv1.Machine) string {
	_, pool, _ := strings.Cut(m.Annotations[hyperv1.NodePoolAnnotation], "/")
	return pool
}

func machineItem(hc *hyperv1.HostedCluster, m *clusterv1.Machine, now time.Time) Item {
	i := item("Machine", "machine.cluster.x-k8s.io", m, why.Of(m, now))
	i.Namespace, i.Cluster = hc.Namespace, hc.Name
	i.Details["cluster"], i.Details["nodePool"] = hc.Name, PoolOf(m)
	i.Details["phase"], i.Details["node"], i.Details["version"] = m.Status.Phase, m.Status.NodeRef.Name, m.Spec.Version
	i.Details["providerID"] = m.Spec.ProviderID
	for _, a := range m.Status.Addresses {
		if a.Type == clusterv1.MachineInternalIP {
			i.Details["address"] = a.Address
			break
		}
	}
	return i
}
