// Package konnectivityagent is the component by which kube-apiserver reaches the parts of the hosted API that run beside it: the tunnel to the hosted
// cluster ends here for their addresses, so that these requests never leave the management cluster.
package konnectivityagent

import (
	"cmp"
	"embed"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "konnectivity-agent"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{MultiZoneSpread: true}).
		WithAdaptFunction(adaptDeployment).
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	main := component.Container(&d.Spec.Template.Spec, Name)
	openshift, err := address(ctx, ctx.Infra.OpenShiftAPIHost, "openshift-apiserver")
	if err != nil {
		return err
	}
	packages, err := address(ctx, ctx.Infra.PackageServerAPIAddress, "packageserver")
	if err != nil {
		return err
	}
	identifiers := "ipv4=" + openshift + "&ipv4=" + packages
	if kit.OAuthEnabled(ctx.HCP) {
		oauth, err := address(ctx, ctx.Infra.OAuthAPIServerHost, "openshift-oauth-apiserver")
		if err != nil {
			return err
		}
		identifiers += "&ipv4=" + oauth
	}
	main.Args = append(main.Args, "--agent-identifiers", identifiers)
	main.Image = cmp.Or(ctx.HCP.Annotations[hyperv1.KonnectivityAgentImageAnnotation], main.Image)
	return nil
}

// address is the ClusterIP of a Service, unless it is known already. A preview does without.
func address(ctx component.WorkloadContext, known, service string) (string, error) {
	if known != "" {
		return known, nil
	}
	s := &corev1.Service{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: service}, s)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading Service %s: %w", service, err)
	}
	if s.Spec.ClusterIP == "" && !ctx.Preview() {
		return "", fmt.Errorf("waiting for the ClusterIP of Service %s", service)
	}
	return s.Spec.ClusterIP, nil
}
