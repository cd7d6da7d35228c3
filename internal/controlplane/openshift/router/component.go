// Package router is the component through which a hosted cluster and its users reach what the control plane publishes under names of its own: a proxy that
// looks at the name in the TLS handshake and passes connections on.
package router

import (
	"embed"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "router"

// podNetworkLabel gives a pod an interface in the virtual network of the hosted cluster, on Azure.
const podNetworkLabel = "kubernetes.azure.com/pod-network-instance"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{RequestServing: true, MultiZoneSpread: true}).
		WithPredicate(wanted).
		WithDependencies("ignition-server").
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("config.yaml", component.AdaptManifest(adaptConfig)).
		WithManifestAdapter("pdb.yaml", component.AdaptPodDisruptionBudget()).
		Build()
}

// wanted waits, on ARO, until all Routes have a host: pods get their network interface once, and the names with it.
func wanted(ctx component.WorkloadContext) (bool, error) {
	if !kit.OwnRouter(ctx) {
		return false, nil
	}
	if !kit.ARO(ctx) {
		return true, nil
	}
	names := []string{"kube-apiserver-internal", "konnectivity-server", "ignition-server"}
	if kit.OAuthEnabled(ctx.HCP) {
		names = append(names, "oauth-internal")
	}
	if kit.ForwardsMetrics(ctx.HCP) {
		names = append(names, "metrics-proxy")
	}
	routes, err := routesOf(ctx)
	if err != nil {
		return false, err
	}
	var waiting []string
	for _, name := range names {
		if routes[name].host == "" {
			waiting = append(waiting, name)
		}
	}
	if len(waiting) > 0 {
		return false, fmt.Errorf("waiting for HCP router routes: %s", strings.Join(waiting, ", "))
	}
	return true, nil
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	if ctx.HCP.Spec.Platform.Type != hyperv1.AzurePlatform || !kit.Swift(ctx.HCP) {
		return nil
	}
	instance := ctx.HCP.Annotations[hyperv1.SwiftPodNetworkInstanceAnnotation]
	if azure := ctx.HCP.Spec.Platform.Azure; azure != nil && azure.Private != nil && azure.Private.Swift != nil {
		instance = azure.Private.Swift.PodNetworkInstance
	}
	if instance != "" {
		d.Spec.Template.Labels[podNetworkLabel] = instance
	}
	return nil
}

func adaptConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	routes, err := routesOf(ctx)
	if err != nil {
		return err
	}
	text, err := config(ctx, routes)
	cm.Data = map[string]string{"haproxy.cfg": text}
	return err
}

// route is what counts of a Route.
type route struct {
	host, service string
	port          int // the target port, when it is a number
	ours          bool
}

// routesOf are the Routes of the control plane by their names; what they would be where the management cluster has no such kind.
func routesOf(ctx component.WorkloadContext) (map[string]route, error) {
	usable, err := kit.HasRoutes(ctx)
	if err != nil {
		return nil, err
	}
	if !usable {
		routes := map[string]route{}
		for _, r := range kit.PlannedRoutes(ctx) {
			routes[r.Name] = route{host: r.Host, service: r.Service, ours: r.Ours}
		}
		return routes, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kit.RouteKind.GroupVersion().WithKind(kit.RouteKind.Kind + "List"))
	if err := ctx.Reader.List(ctx.Context, list, client.InNamespace(ctx.HCP.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the Routes of the control plane: %w", err)
	}
	routes := map[string]route{}
	for i := range list.Items {
		u := &list.Items[i]
		var r route
		r.host, _, _ = unstructured.NestedString(u.Object, "spec", "host")
		r.service, _, _ = unstructured.NestedString(u.Object, "spec", "to", "name")
		if port, ok, _ := unstructured.NestedInt64(u.Object, "spec", "port", "targetPort"); ok {
			r.port = int(port)
		}
		_, r.ours = u.GetLabels()[kit.RouterLabel]
		routes[u.GetName()] = r
	}
	return routes, nil
}
