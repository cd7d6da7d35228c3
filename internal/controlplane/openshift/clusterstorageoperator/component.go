// Package clusterstorageoperator is the component that runs the operator of a hosted cluster's CSI drivers, whose controllers it makes beside the
// control plane.
package clusterstorageoperator

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "cluster-storage-operator"

const diskClass, fileClass = "managed-azure-disk-csi", "managed-azure-file-csi"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	onAzure := component.EnableForPlatform(hyperv1.AzurePlatform)
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(kit.NotOnPlatform(hyperv1.IBMCloudPlatform, hyperv1.PowerVSPlatform)).
		WithDependencies("openshift-apiserver").
		InjectAvailabilityProber(component.AvailabilityProber{
			KubeconfigVolume: "guest-kubeconfig", RequiredAPIs: []schema.GroupVersionKind{{Group: "operator.openshift.io", Version: "v1", Kind: "Storage"}},
		}).
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("config.yaml", component.AdaptManifest(kit.AdaptControllerConfig)).
		WithManifestAdapter("azure-disk-csi-config.yaml", onAzure, component.AdaptManifest(cloudConfig(disk))).
		WithManifestAdapter("azure-file-csi-config.yaml", onAzure, component.AdaptManifest(cloudConfig(file))).
		WithManifestAdapter("azure-disk-csi-secretproviderclass.yaml", kit.SecretProviderClass(disk.managed)...).
		WithManifestAdapter("azure-file-csi-secretproviderclass.yaml", kit.SecretProviderClass(file.managed)...).
		WithCustomOperandsRolloutCheckFunc(checkOperands).
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	main := component.Container(&d.Spec.Template.Spec, Name)
	kit.SetEnv(main, "OPERATOR_IMAGE_VERSION", ctx.UserRelease.Version)
	kit.SetEnv(main, "OPERAND_IMAGE_VERSION", ctx.UserRelease.Version)
	setImages(ctx, main)
	kit.SetRunAsUser(ctx, main)
	if kit.ARO(ctx) {
		kit.SetEnv(main, "ARO_HCP_SECRET_PROVIDER_CLASS_FOR_DISK", diskClass)
		kit.SetEnv(main, "ARO_HCP_SECRET_PROVIDER_CLASS_FOR_FILE", fileClass)
	}
	component.ManagementProxy(ctx, main)
	return nil
}

// setImages gives the operator an image for each variable that the asset has without a value. An image that the payload lacks keeps its variable as it is.
func setImages(ctx component.WorkloadContext, c *corev1.Container) {
	for _, from := range []struct {
		tags  map[string]string
		image func(component.WorkloadContext, string) string
	}{{images, kit.Image}, {userImages, kit.UserImage}} {
		for i := range c.Env {
			if tag, ok := from.tags[c.Env[i].Name]; ok {
				if image := from.image(ctx, tag); image != "" {
					c.Env[i].Value = image
				}
			}
		}
	}
}

func checkOperands(ctx component.WorkloadContext) error {
	var operands []component.Operand
	driver := func(name string) {
		operands = append(operands,
			component.Operand{Deployment: name + "-operator", Container: name + "-operator", Tag: name + "-operator"},
			component.Operand{Deployment: name + "-controller", Container: "csi-driver", Tag: name})
	}
	switch ctx.HCP.Spec.Platform.Type {
	case hyperv1.AWSPlatform:
		driver("aws-ebs-csi-driver")
	case hyperv1.AzurePlatform:
		driver("azure-disk-csi-driver")
		driver("azure-file-csi-driver")
	}
	return component.CheckOperands(ctx, operands...)
}
