// Package kubecontrollermanager is the component that runs Kubernetes' controllers, as OpenShift builds them.
package kubecontrollermanager

import (
	"embed"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/settings"
	"hcp.internal/platform/internal/pki"
)

// Name of the component.
const Name = names.KubeControllerManager

// The authority of serving certificates that the hosted cluster gives to its Services, as the hosted-cluster-config-operator copies it here.
const (
	serviceCA    = "service-serving-ca"
	serviceCADir = "/etc/kubernetes/certs/service-ca"
)

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{MultiZoneSpread: true}).
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("config.yaml", component.AdaptManifest(adaptConfig)).
		WithManifestAdapter("recycler-config.yaml", component.AdaptManifest(adaptRecycler)).
		WithManifestAdapter("kube-controller-manager-kubeconfig.yaml", kit.Kubeconfig{Client: pki.KCMClient}.Adapt()).
		InjectAvailabilityProber(component.AvailabilityProber{}).
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	main := component.Container(&d.Spec.Template.Spec, Name)
	component.ManagementProxy(ctx, main)
	if pods := settings.ClusterCIDRs(ctx.HCP); len(pods) > 0 {
		main.Args = append(main.Args, "--cluster-cidr="+pods[0])
	}
	if services := settings.ServiceCIDRs(ctx.HCP); len(services) > 0 {
		main.Args = append(main.Args, "--service-cluster-ip-range="+services[0])
	}
	grace := "50s"
	switch ctx.HCP.Spec.Platform.Type {
	case hyperv1.AzurePlatform:
		main.Args = append(main.Args, "--cloud-provider=external")
	case hyperv1.IBMCloudPlatform:
		grace = "55s"
	}
	allocate := ctx.HCP.Spec.Networking.AllocateNodeCIDRs
	main.Args = append(main.Args,
		fmt.Sprintf("--allocate-node-cidrs=%t", allocate != nil && *allocate == hyperv1.AllocateNodeCIDRsEnabled),
		"--node-monitor-grace-period="+grace)
	main.Args = append(main.Args, kit.TLSOf(ctx.HCP).Args()...)
	main.Args = append(main.Args, kit.ProfilingArgs(ctx.HCP, Name)...)
	gates, err := kit.FeatureGateArgs(ctx)
	if err != nil {
		return err
	}
	main.Args = append(main.Args, gates...)
	known, err := servicesHaveCA(ctx)
	if known {
		d.Spec.Template.Spec.Volumes = append(d.Spec.Template.Spec.Volumes, component.ConfigMapVolume(serviceCA, serviceCA))
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: serviceCA, MountPath: serviceCADir})
	}
	return err
}

func adaptConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	known, err := servicesHaveCA(ctx)
	if !known || err != nil {
		return err
	}
	return kit.EditConfig(cm, "config.json", func(config map[string]any) error {
		kit.Section(config, "serviceServingCert")["certFile"] = serviceCADir + "/service-ca.crt"
		return nil
	})
}

// servicesHaveCA says whether the hosted cluster has told of the authority of its Services.
func servicesHaveCA(ctx component.WorkloadContext) (bool, error) {
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: serviceCA}, &corev1.ConfigMap{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading ConfigMap %s: %w", serviceCA, err)
	}
	return true, nil
}

// adaptRecycler says which image empties volumes.
func adaptRecycler(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	return kit.EditConfig(cm, "recycler-pod.yaml", func(pod map[string]any) error {
		containers, _ := kit.Section(pod, "spec")["containers"].([]any)
		for _, c := range containers {
			if c, ok := c.(map[string]any); ok {
				c["image"] = kit.Image(ctx, "tools")
			}
		}
		return nil
	})
}
