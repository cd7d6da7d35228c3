// Package clusternodetuningoperator is the component that runs the operator which tunes the hosted cluster's nodes.
package clusternodetuningoperator

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component, and of its container.
const Name = "cluster-node-tuning-operator"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(kit.WithCapability(hyperv1.NodeTuningCapability)).
		WithDependencies("openshift-apiserver").
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("servicemonitor.yaml", component.AdaptManifest(adaptMonitor)).
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	c := component.Container(&d.Spec.Template.Spec, Name)
	kit.SetEnv(c, "RELEASE_VERSION", ctx.UserRelease.Version)
	kit.SetEnv(c, "CLUSTER_NODE_TUNED_IMAGE", kit.UserImage(ctx, "cluster-node-tuning-operator"))
	return nil
}

// adaptMonitor names the server by the name in its certificate.
func adaptMonitor(ctx component.WorkloadContext, u *unstructured.Unstructured) error {
	endpoints, _, err := unstructured.NestedSlice(u.Object, "spec", "endpoints")
	if err != nil {
		return err
	}
	for _, e := range endpoints {
		if endpoint, ok := e.(map[string]any); ok {
			kit.Section(endpoint, "tlsConfig")["serverName"] = "node-tuning-operator." + ctx.HCP.Namespace + ".svc"
		}
	}
	return unstructured.SetNestedSlice(u.Object, endpoints, "spec", "endpoints")
}
