// Package karpenter is the component that makes machines of a hosted cluster one by one, as its pods need them: hcp-karpenter, which is Karpenter's core with machines of
// platform Local. It is for Kubernetes releases; OpenShift payloads have their own.
//
// It exists while spec.autoNode asks for it, and after that until its machines are drained and gone: removed at once, it would leave nodes behind that nobody removes.
package karpenter

import (
	"embed"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/release"
)

const (
	// Name of the component.
	Name = "karpenter"
	// Tag of its image in Kubernetes releases. Releases without it are complete: those of distributions have it, local ones once it was built.
	Tag = "karpenter"
)

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(wanted).
		WithAdaptFunction(adaptDeployment).
		Build()
}

// Asked says whether a hosted cluster is to have machines of platform Local made by Karpenter.
func Asked(node *hyperv1.AutoNode) bool {
	return node != nil && node.Provisioner.Name == hyperv1.ProvisionerKarpenter && node.Provisioner.Karpenter != nil &&
		node.Provisioner.Karpenter.Platform == hyperv1.KarpenterLocalPlatform
}

// retireVariable has the program make no more machines, and remove those that it made.
const retireVariable = "RETIRE"

// Retired says that a Deployment of the component has nothing left to do, as far as anybody asks for nothing: its program was told so, reported since then (before that it is
// not ready), and counts nothing any more.
func Retired(hcp *hyperv1.HostedControlPlane, d *appsv1.Deployment) bool {
	told := slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == retireVariable })
	})
	return told && d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas > 0 && d.Status.AvailableReplicas > 0 &&
		hcp.Status.AutoNode == (hyperv1.AutoNodeStatus{})
}

// Concerns says whether a control plane has this component, or may still have something of it.
func Concerns(hcp *hyperv1.HostedControlPlane) bool {
	return Asked(hcp.Spec.AutoNode) || conditions.Get(hcp.Status.Conditions, hyperv1.AutoNodeEnabled) != nil
}

// Problem says why a control plane that asks for it can't have it, and what to do; empty: it can.
func Problem(hcp *hyperv1.HostedControlPlane, r *release.Release) string {
	_, unmanaged := hcp.Annotations[hyperv1.DisableMachineManagement]
	switch {
	case hcp.Spec.Platform.Type != hyperv1.LocalPlatform:
		return fmt.Sprintf("spec.autoNode.provisionerConfig.karpenter.platform is %s, and the hosted cluster is of platform %s: remove spec.autoNode, and size NodePools with spec.autoScaling",
			hyperv1.KarpenterLocalPlatform, hcp.Spec.Platform.Type)
	case unmanaged:
		return fmt.Sprintf("annotation %s turns off the creation of machines: remove it, or remove spec.autoNode", hyperv1.DisableMachineManagement)
	case len(r.Missing(Tag)) > 0:
		return fmt.Sprintf("release %s has no image %q: `make karpenter up` adds it to local releases, and those of distributions include it", r.Version, Tag)
	}
	return ""
}

// wanted is false until there is a hosted API to look at.
func wanted(ctx component.WorkloadContext) (bool, error) {
	if ctx.HCP.Status.KubeConfig == nil || Problem(ctx.HCP, ctx.Release) != "" {
		return false, nil
	}
	if !Asked(ctx.HCP.Spec.AutoNode) {
		return retiring(ctx)
	}
	return component.HasKubeconfig(ctx, pki.CAPIKubeconfig(ctx.HCP.Spec.InfraID))
}

// retiring says whether it is there and has something left to remove.
func retiring(ctx component.WorkloadContext) (bool, error) {
	key, d := client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: Name}, &appsv1.Deployment{}
	switch err := ctx.Reader.Get(ctx.Context, key, d); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	return d.DeletionTimestamp.IsZero() && !Retired(ctx.HCP, d), nil
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	main := component.Container(&d.Spec.Template.Spec, Name)
	main.Env = append(main.Env, corev1.EnvVar{Name: "MANAGEMENT_NAMESPACE", Value: ctx.HCP.Namespace}, corev1.EnvVar{Name: "HOSTED_CONTROL_PLANE", Value: ctx.HCP.Name})
	if !Asked(ctx.HCP.Spec.AutoNode) {
		main.Env = append(main.Env, corev1.EnvVar{Name: retireVariable, Value: "true"})
	}
	if component.PrivateCAPI(ctx.HCP) {
		// It knows the stored groups itself, and needs no proxy.
		main.Env = append(main.Env, corev1.EnvVar{Name: "USE_PRIVATE_CAPI_TYPES", Value: "true"})
	}
	for i := range d.Spec.Template.Spec.Volumes {
		if v := &d.Spec.Template.Spec.Volumes[i]; v.Name == "kubeconfig" {
			v.Secret.SecretName = pki.CAPIKubeconfig(ctx.HCP.Spec.InfraID)
		}
	}
	return nil
}
