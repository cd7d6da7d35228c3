package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/autoscaler/simulate"
	"hcp.internal/platform/internal/capacity"
	"hcp.internal/platform/internal/controlplane"
	"hcp.internal/platform/internal/controlplane/capiprovider"
	"hcp.internal/platform/internal/controlplane/clusterapi"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	"hcp.internal/platform/internal/controlplane/etcd"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/kube/memory"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/packages/control/pod"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
)

// demander is a component that can say what it asks for.
type demander interface {
	Demand(component.WorkloadContext) (*component.Demand, error)
}

// ownComponents are those that all control planes have. Parsing their assets costs more than a pass.
var ownComponents = sync.OnceValue(controlplane.Components)

// anyRelease stands for a release that has not been read: a Kubernetes release with everything that makes containers.
var anyRelease = &release.Release{Kubernetes: true, Images: map[string]string{"kubelet": "any", "pause": "any", "apiserver-network-proxy": "any"}}

// demands works out what control planes ask for, and remembers it.
type demands struct {
	management           *management.Cluster
	capabilities         operator.Capabilities
	controlPlaneOperator cpo.Options

	// known is by HostedControlPlane. Of those that are gone nothing is taken out one by one.
	known memory.Of[demanded]
}

type demanded struct {
	input  uint64
	groups []capacity.Group
	spare  *capacity.Group
}

// of is Queue.Demands.
func (d *demands) of(ctx context.Context, hcp *hyperv1.HostedControlPlane, rel *release.Release) ([]capacity.Group, *capacity.Group, error) {
	management, err := d.management.Describe(ctx)
	if err != nil {
		return nil, nil, err
	}
	key := client.ObjectKeyFromObject(hcp)
	packages, err := d.management.Accessible(ctx, phaseKind)
	if err != nil {
		return nil, nil, fmt.Errorf("looking for the operator of packages: %w", err)
	}
	h := fnv.New64a()
	if err := json.NewEncoder(h).Encode([]any{hcp.Spec, hcp.Annotations, management, packages}); err != nil {
		return nil, nil, fmt.Errorf("hashing HostedControlPlane %s: %w", key, err)
	}
	known, ok := d.known.Get(key)
	// What was worked out with the release itself stays right when somebody asks without it.
	if ok && known.input == h.Sum64() && rel == nil {
		return known.groups, known.spare, nil
	}
	groups, spare, err := d.compute(ctx, hcp, rel, management)
	if err != nil {
		return nil, nil, err
	}
	if packages {
		groups = append(groups, connectorOf(hcp))
	}
	d.known.Put(key, demanded{h.Sum64(), groups, spare})
	return groups, spare, nil
}

func (d *demands) compute(ctx context.Context, hcp *hyperv1.HostedControlPlane, rel *release.Release, management component.Management) ([]capacity.Group, *capacity.Group, error) {
	if rel == nil {
		rel = anyRelease
	}
	wctx := component.WorkloadContext{
		Context: ctx, HCP: hcp, Release: rel, Capabilities: d.management, Management: management, OperatorImage: "any", CAPIProxyImage: "any",
		// In the end everything has an address, the tunnel, too, where it is offered.
		Infra: endpoints.Status{APIHost: "any", APIPort: 6443, AdvertiseAddress: "192.0.2.1", AdvertisePort: 6443, KonnectivityHost: "any", KonnectivityPort: 8091},
	}
	list, err := d.components(hcp)
	if err != nil {
		return nil, nil, err
	}
	var groups []capacity.Group
	var spare *capacity.Group
	for _, c := range list {
		one, ok := c.(demander)
		if !ok {
			continue
		}
		demand, err := one.Demand(wctx)
		if err != nil {
			return nil, nil, err
		}
		if demand == nil {
			continue
		}
		g := groupOf(hcp.Namespace, demand, management.Zones > 0)
		groups = append(groups, g)
		if demand.Surge && (spare == nil || g.Pod.Requests[corev1.ResourceCPU] > spare.Pod.Requests[corev1.ResourceCPU]) {
			one := g
			one.Component, one.Count, one.Apart = "the rollout of "+g.Component+", which makes a new pod before it ends the old one,", 1, ""
			spare = &one
		}
	}
	return groups, spare, nil
}

// components are all that make pods in the namespace of a control plane, for as long as it is there.
func (d *demands) components(hcp *hyperv1.HostedControlPlane) ([]component.Component, error) {
	list := append([]component.Component{cpo.NewComponent(d.controlPlaneOperator)}, ownComponents()...)
	list = append(list, etcd.Shards(hcp)...)
	p, err := platform.For(hcp.Spec.Platform.Type)
	if _, disabled := hcp.Annotations[hyperv1.DisableMachineManagement]; err != nil || disabled || !d.capabilities.ClusterAPI {
		return list, nil //nolint:nilerr // because a platform that is refused gets nothing at all
	}
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Name: hcp.Name}, Spec: hyperv1.HostedClusterSpec{Platform: hcp.Spec.Platform, InfraID: hcp.Spec.InfraID}}
	if infra, err := p.InfraCR(hc, hcp.Namespace, hyperv1.APIEndpoint{}); infra == nil || err != nil {
		return list, err
	}
	spec, err := p.CAPIProvider(hc, hcp)
	if err != nil {
		return nil, err
	}
	return append(list, clusterapi.NewComponent(clusterapi.Options{Enabled: true}), capiprovider.NewComponent(capiprovider.Options{Spec: spec})), nil
}

// phaseKind is served where the operator of packages is installed, which puts a connector beside every control plane.
var phaseKind = packagesv1.GroupVersion.WithKind("ObjectSetPhase")

// connectorOf is the pod of the connector, as far as the control plane decides where it may be. A place that the operator of packages is told for
// its helpers is not known here: it may be narrower.
func connectorOf(hcp *hyperv1.HostedControlPlane) capacity.Group {
	tolerate := func(key, value string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual, Value: value, Effect: corev1.TaintEffectNoSchedule}
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace}, Spec: corev1.PodSpec{
		NodeSelector: hcp.Spec.NodeSelector,
		Tolerations: append([]corev1.Toleration{tolerate("hypershift.openshift.io/control-plane", "true"), tolerate("hypershift.openshift.io/cluster", hcp.Namespace)},
			hcp.Spec.Tolerations...),
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: pod.ConnectorRequests()}}},
	}}
	return capacity.Group{Component: pod.ConnectorName, Pod: simulate.Analyse(p), Count: 1}
}

// groupOf makes pods of a demand.
func groupOf(namespace string, d *component.Demand, zones bool) capacity.Group {
	pod := &corev1.Pod{ObjectMeta: d.Template.ObjectMeta, Spec: d.Template.Spec}
	pod.Namespace = namespace
	g := capacity.Group{Component: d.Component, Pod: simulate.Analyse(pod), Count: int(d.Replicas)}
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			// What is apart by zones is so by nodes, too. Where nodes bear no zone that rule says nothing.
			if zone := term.TopologyKey == corev1.LabelTopologyZone; zone && zones || !zone && g.Apart == "" {
				g.Apart = term.TopologyKey
			}
		}
	}
	return g
}
