// Package clusterversionoperator is the component that runs the operator which keeps what the hosted cluster consists of at the version of the
// release.
package clusterversionoperator

import (
	"embed"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/releaseimage"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/release"
)

// Name of the component, of its main container, and of its ServiceAccount.
const Name = "cluster-version-operator"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{}).
		WithDependencies("openshift-apiserver").
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("role.yaml", component.When(kit.WithManagementMetrics)).
		WithManifestAdapter("rolebinding.yaml", component.When(kit.WithManagementMetrics)).
		WithManifestAdapter("serviceaccount.yaml", component.When(kit.WithManagementMetrics)).
		WithManifestAdapter("service.yaml", component.DisableIfAnnotationExist(hyperv1.DisableMonitoringServices)).
		InjectAvailabilityProber(component.AvailabilityProber{KubeconfigVolume: "kubeconfig"}).
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	hcp, pod := ctx.HCP, &d.Spec.Template.Spec
	prepare := component.Container(pod, "prepare-payload")
	script, err := prepareScript(hcp)
	if err != nil {
		return err
	}
	prepare.Image, prepare.Args = pinned(ctx.Release, releaseimage.ControlPlane(&hcp.Spec)), append(prepare.Args, script)

	version, err := clusterVersion(hcp)
	if err != nil {
		return err
	}
	kit.SetEnv(component.Container(pod, "bootstrap"), "CLUSTER_VERSION_JSON", version)

	main := component.Container(pod, Name)
	kit.SetEnv(main, "RELEASE_IMAGE", pinned(ctx.UserRelease, hcp.Spec.ReleaseImage))
	main.Args = append(main.Args, kit.TLSOf(hcp).Args()...)
	if url := hcp.Spec.UpdateService; url != "" {
		main.Args = append(main.Args, "--update-service", url)
	}
	if kit.ReadsManagementMetrics(ctx) {
		main.Args = append(main.Args,
			"--use-dns-for-services=true", "--metrics-ca-bundle-file=/var/run/secrets/kubernetes.io/serviceaccount/service-ca.crt", "--metrics-url="+metricsURL(ctx))
		pod.ServiceAccountName = Name
		meta := &d.Spec.Template.ObjectMeta
		if meta.Annotations == nil {
			meta.Annotations = map[string]string{}
		}
		meta.Labels[component.NeedMetricsServerAccessAnnotation] = "true"
		meta.Annotations[component.NeedMetricsServerAccessAnnotation] = "true"
	}
	return nil
}

// pinned is a release image by digest, where that is known.
func pinned(r *release.Release, image string) string {
	if r != nil && r.Matches(image) {
		return r.Pinned()
	}
	return image
}

// clusterVersion is the ClusterVersion of the hosted cluster as it starts. Applying it again changes nothing else of the live one.
func clusterVersion(hcp *hyperv1.HostedControlPlane) (string, error) {
	type meta struct {
		Name string `json:"name"`
	}
	type capabilities struct {
		Baseline string   `json:"baselineCapabilitySet"`
		Enabled  []string `json:"additionalEnabledCapabilities"`
	}
	type spec struct {
		ClusterID    string       `json:"clusterID"`
		Capabilities capabilities `json:"capabilities"`
	}
	raw, err := json.Marshal(struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Metadata   meta   `json:"metadata"`
		Spec       spec   `json:"spec"`
	}{"ClusterVersion", "config.openshift.io/v1", meta{"version"}, spec{hcp.Spec.ClusterID, capabilities{"None", kit.Capabilities(hcp)}}})
	if err != nil {
		return "", fmt.Errorf("encoding the ClusterVersion: %w", err)
	}
	return string(raw), nil
}

// metricsURL is where that monitoring answers.
func metricsURL(ctx component.WorkloadContext) string {
	switch {
	case ctx.Environment.CVOPrometheusURL != "":
		return ctx.Environment.CVOPrometheusURL
	case kit.RHOBSOfROSA(ctx):
		return "http://hypershift-monitoring-stack-prometheus.openshift-observability-operator.svc:9090"
	}
	return "https://thanos-querier.openshift-monitoring.svc:9092?namespace=" + ctx.HCP.Namespace
}
