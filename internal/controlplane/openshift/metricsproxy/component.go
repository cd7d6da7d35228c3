// Package metricsproxy is the component that offers the metrics of the control plane to the hosted cluster.
package metricsproxy

import (
	"cmp"
	"embed"
	"path"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "metrics-proxy"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{RequestServing: true}).
		WithPredicate(kit.WithForwardedMetrics).
		WithDependencies("endpoint-resolver").
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("scrape-config.yaml", component.AdaptManifest(adaptConfig)).
		WithManifestAdapter("route.yaml", component.AdaptManifest(adaptRoute)).
		WithManifestAdapter("ca-cert.yaml", kit.Certificate()...).
		WithManifestAdapter("serving-cert.yaml", kit.Certificate()...).
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	pod := &d.Spec.Template.Spec
	main := component.Container(pod, Name)
	set := cmp.Or(string(ctx.HCP.Spec.Monitoring.MetricsForwarding.MetricsSet), ctx.MetricsSet, string(hyperv1.MetricsSetAll))
	main.Args = append(main.Args, "--metrics-set", set)
	targets, err := monitored(ctx)
	if err != nil {
		return err
	}
	for _, f := range filesOf(targets) {
		volume := corev1.Volume{Name: strings.ReplaceAll(f.object, ".", "-")}
		if f.configMap {
			volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: f.object}, Optional: ptr.To(true)}
			for _, key := range f.keys {
				volume.ConfigMap.Items = append(volume.ConfigMap.Items, corev1.KeyToPath{Key: key, Path: key})
			}
		} else {
			volume.Secret = &corev1.SecretVolumeSource{SecretName: f.object, Optional: ptr.To(true)}
		}
		if kit.Volume(pod, volume.Name) == nil {
			kit.Mount(pod, Name, volume, path.Join(certsDir, f.object))
		}
	}
	return nil
}

func adaptRoute(ctx component.WorkloadContext, route *unstructured.Unstructured) error {
	if kit.Private(ctx.HCP) {
		return kit.InternalRoute(ctx, route)
	}
	return kit.ExternalRoute(ctx, route, kit.MetricsProxyHost(ctx.HCP))
}
