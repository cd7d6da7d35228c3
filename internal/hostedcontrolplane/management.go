package hostedcontrolplane

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/endpoints"
)

const (
	// managementFresh is how long facts about the management cluster are believed: kinds appear when somebody installs an operator, nodes come and
	// go, and neither is worth a request per pass.
	managementFresh = 10 * time.Minute
	// maxNodes bounds the count of nodes; more of them than replicas make no difference.
	maxNodes = 500
	// probeName is the name of an object that does not exist.
	probeName = "probe-of-the-control-plane-operator"
)

var (
	sccKind  = schema.GroupVersionKind{Group: "security.openshift.io", Version: "v1", Kind: "SecurityContextConstraints"}
	nodeKind = corev1.SchemeGroupVersion.WithKind("Node")
)

// builtin groups are served by every cluster, and the operator has its rights on them or cannot work at all.
var builtin = map[string]bool{"": true, "apps": true, "batch": true, "policy": true, "rbac.authorization.k8s.io": true, "discovery.k8s.io": true,
	"coordination.k8s.io": true, "hypershift.openshift.io": true}

// managementCluster implements Management with requests whose answers it remembers.
type managementCluster struct {
	live      client.Reader
	mapper    meta.RESTMapper
	namespace string
	clock     clock.PassiveClock
	// told is what the process was started with; the zero value means nothing.
	told component.Management

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]remembered[bool]
	facts remembered[component.Management]
}

type remembered[T any] struct {
	value T
	at    time.Time
}

func newManagementCluster(live client.Reader, mapper meta.RESTMapper, namespace string, clk clock.PassiveClock, told component.Management) *managementCluster {
	return &managementCluster{live: live, mapper: mapper, namespace: namespace, clock: clk, told: told, kinds: map[schema.GroupVersionKind]remembered[bool]{}}
}

// Accessible implements component.Capabilities: the kind is served, and the operator may read it.
func (m *managementCluster) Accessible(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	if builtin[gvk.Group] {
		return true, nil
	}
	return m.remember(gvk, func() (bool, error) {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(gvk)
		err := m.live.Get(ctx, client.ObjectKey{Namespace: m.namespace, Name: probeName}, obj)
		switch {
		case err == nil, apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return true, nil
		case meta.IsNoMatchError(err), apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
			return false, nil
		}
		return false, fmt.Errorf("looking for kind %s: %w", gvk, err)
	})
}

// Routes implements Management.
func (m *managementCluster) Routes(context.Context) (bool, error) {
	return m.served(endpoints.RouteKind)
}

// served reports whether the management cluster has the kind, whatever the operator may do with it.
func (m *managementCluster) served(gvk schema.GroupVersionKind) (bool, error) {
	return m.remember(gvk, func() (bool, error) {
		_, err := m.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		switch {
		case err == nil:
			return true, nil
		case meta.IsNoMatchError(err):
			return false, nil
		}
		return false, fmt.Errorf("looking for kind %s: %w", gvk, err)
	})
}

// remember keeps an answer for managementFresh; a kind that is served stays served.
func (m *managementCluster) remember(gvk schema.GroupVersionKind, ask func() (bool, error)) (bool, error) {
	m.mu.Lock()
	known, ok := m.kinds[gvk]
	m.mu.Unlock()
	if ok && (known.value || m.clock.Since(known.at) < managementFresh) {
		return known.value, nil
	}
	answer, err := ask()
	if err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kinds[gvk] = remembered[bool]{answer, m.clock.Now()}
	return answer, nil
}

// Facts implements Management. The hypershift-operator tells its operators what it knows; a process that was started in another way looks for itself.
// What cannot be read counts as unknown, and components then assume a large cluster.
func (m *managementCluster) Facts(ctx context.Context) component.Management {
	if m.told != (component.Management{}) {
		return m.told
	}
	m.mu.Lock()
	known := m.facts
	m.mu.Unlock()
	if !known.at.IsZero() && m.clock.Since(known.at) < managementFresh {
		return known.value
	}
	log := ctrl.LoggerFrom(ctx)
	facts := component.Management{NativeSidecars: true} // every Kubernetes that this is supported on has them
	scc, err := m.served(sccKind)
	if err != nil {
		log.V(1).Info("assuming no SecurityContextConstraints", "reason", err.Error())
	}
	facts.SetDefaultSecurityContext = !scc
	if facts.Nodes, facts.Zones, err = countNodes(ctx, m.live); err != nil {
		log.V(1).Info("assuming enough nodes and zones", "reason", err.Error())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.facts = remembered[component.Management]{facts, m.clock.Now()}
	return facts
}

// countNodes gives the numbers of nodes and of zones, without nodes that are kept for pods that serve requests of users. Nodes without a zone are in one.
func countNodes(ctx context.Context, live client.Reader) (nodes, zones int, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(nodeKind)
	if err := live.List(ctx, list, client.Limit(maxNodes)); err != nil {
		return 0, 0, fmt.Errorf("listing nodes: %w", err)
	}
	names := map[string]bool{}
	for _, node := range list.Items {
		if node.Labels[component.RequestServingLabel] == "true" {
			continue
		}
		nodes++
		names[node.Labels[corev1.LabelTopologyZone]] = true
	}
	return nodes, len(names), nil
}
