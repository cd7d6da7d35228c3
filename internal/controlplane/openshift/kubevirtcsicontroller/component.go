// Package kubevirtcsicontroller is the component that gives volumes of the cluster whose virtual machines are the nodes to the hosted cluster.
package kubevirtcsicontroller

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "kubevirt-csi-controller"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(wanted).
		InjectServiceAccountKubeconfig(component.ServiceAccountKubeconfig{
			Name: "kubevirt-csi-controller-sa", Namespace: "openshift-cluster-csi-drivers", MountPath: "/var/run/secrets/tenantcluster",
		}).
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("config.yaml", component.AdaptManifest(adaptConfig)).
		Build()
}

// storage is spec.platform.kubevirt.storageDriver, never nil.
func storage(hcp *hyperv1.HostedControlPlane) hyperv1.KubevirtStorageDriverSpec {
	if k := hcp.Spec.Platform.Kubevirt; k != nil && k.StorageDriver != nil {
		return *k.StorageDriver
	}
	return hyperv1.KubevirtStorageDriverSpec{}
}

func wanted(ctx component.WorkloadContext) (bool, error) {
	return ctx.HCP.Spec.Platform.Type == hyperv1.KubevirtPlatform && storage(ctx.HCP).Type != hyperv1.NoneKubevirtStorageDriverConfigType, nil
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	if !kit.ExternalInfra(ctx.HCP) {
		return nil
	}
	pod := &d.Spec.Template.Spec
	driver := component.Container(pod, "csi-driver")
	driver.Args = append(driver.Args, "--infra-cluster-kubeconfig=/var/run/secrets/infracluster/kubeconfig")
	kit.Mount(pod, driver.Name, component.SecretVolume("infracluster", kit.InfraKubeconfig), "/var/run/secrets/infracluster")
	return nil
}

func adaptConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	classes, err := enforcement(storage(ctx.HCP))
	if err != nil {
		return err
	}
	cm.Data = map[string]string{
		"infraClusterNamespace":        kit.InfraNamespace(ctx.HCP),
		"infraClusterLabels":           "hypershift.openshift.io/infra-id=" + ctx.HCP.Spec.InfraID,
		"infraStorageClassEnforcement": classes,
	}
	return nil
}

// enforcement says, as YAML, which storage classes of the infrastructure the hosted cluster may use, and which classes of snapshots go with them.
func enforcement(driver hyperv1.KubevirtStorageDriverSpec) (string, error) {
	switch driver.Type {
	case hyperv1.NoneKubevirtStorageDriverConfigType:
		return "allowDefault: false\nallowAll: false\n", nil
	case hyperv1.ManualKubevirtStorageDriverConfigType:
		if driver.Manual != nil {
			return manual(driver.Manual)
		}
	}
	return "allowDefault: true\nallowAll: false\n", nil
}
