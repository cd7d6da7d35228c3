package management

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/controlplane/component"
)

// Cluster tells what control planes may know of the management cluster.
type Cluster struct {
	// Reader reads nodes; of a cache, labels, networks and readiness are enough.
	Reader client.Reader
	Mapper meta.RESTMapper
	// NativeSidecars is whether init containers may go on running.
	NativeSidecars bool
	Clock          clock.PassiveClock
	// Networks are closed to the pods of control planes besides those that are found.
	Networks []netip.Prefix

	mu     sync.Mutex
	absent map[schema.GroupVersionKind]time.Time // when it was found not to be served
}

// absentFor is how long a kind that was not served is taken for absent: a mapper asks the API server for it every time, and there are
// several such kinds in each pass.
const absentFor = time.Minute

// firstWithSidecars is the first version of Kubernetes with sidecar containers on by default.
var firstWithSidecars = version.MustParseGeneric("1.29")

// NativeSidecars asks the management cluster for its version.
func NativeSidecars(d discovery.ServerVersionInterface) (bool, error) {
	info, err := d.ServerVersion()
	if err != nil {
		return false, fmt.Errorf("asking the management cluster for its version: %w", err)
	}
	v, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return false, fmt.Errorf("parsing the version of the management cluster: %w", err)
	}
	return v.AtLeast(firstWithSidecars), nil
}

// Accessible implements component.Capabilities.
func (m *Cluster) Accessible(_ context.Context, gvk schema.GroupVersionKind) (bool, error) {
	m.mu.Lock()
	since, absent := m.absent[gvk]
	m.mu.Unlock()
	if absent && m.Clock.Since(since) < absentFor {
		return false, nil
	}
	_, err := m.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if !meta.IsNoMatchError(err) {
		return err == nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.absent == nil {
		m.absent = map[schema.GroupVersionKind]time.Time{}
	}
	m.absent[gvk] = m.Clock.Now()
	return false, nil
}

// Describe counts what pods can be spread over. Nodes that are kept for the requests of one hosted cluster are none of them: counted, they would demand a
// spread over zones in which nothing else may run.
func (m *Cluster) Describe(ctx context.Context) (component.Management, error) {
	nodes := &corev1.NodeList{}
	if err := m.Reader.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return component.Management{}, fmt.Errorf("counting the nodes of the management cluster: %w", err)
	}
	zones, count := sets.New[string](), 0
	for _, n := range nodes.Items {
		if n.Labels[component.RequestServingLabel] == "true" {
			continue
		}
		count++
		if zone := n.Labels[corev1.LabelTopologyZone]; zone != "" {
			zones.Insert(zone)
		}
	}
	return component.Management{Nodes: count, Zones: zones.Len(), NativeSidecars: m.NativeSidecars}, nil
}
