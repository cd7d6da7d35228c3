// Package ignitionserver is the component that hands new machines of an OpenShift payload their configuration.
package ignitionserver

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	kubernetes "hcp.internal/platform/internal/controlplane/ignitionserver"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/endpoints"
)

// Name of the component.
const Name = names.IgnitionServer

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{MultiZoneSpread: true, NeedsManagementKASAccess: true}).
		WithPredicate(Wanted).
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("role.yaml", component.AdaptManifest(adaptRole)).
		WithManifestAdapter("service.yaml", component.AdaptManifest(adaptService)).
		WithManifestAdapter("route.yaml", component.When(byRoute), component.AdaptManifest(adaptRoute)).
		WithManifestAdapter("ca-cert.yaml", kit.Certificate()...).
		WithManifestAdapter("serving-cert.yaml", kit.Certificate()...).
		Build()
}

// Wanted is false where the user does without.
func Wanted(ctx component.WorkloadContext) (bool, error) {
	_, disabled := ctx.HCP.Annotations[hyperv1.DisableIgnitionServerAnnotation]
	return !disabled, nil
}

// adaptRole grants what the server needs, which is less than what is published: it faces machines that nobody knows yet, and among the Secrets of the
// namespace are the keys of all authorities. Previews show what is published.
func adaptRole(ctx component.WorkloadContext, role *rbacv1.Role) error {
	if ctx.PublishedRights {
		return nil
	}
	rules, err := kubernetes.Rights(ctx)
	role.Rules = append(rules, rbacv1.PolicyRule{
		APIGroups: []string{hyperv1.GroupVersion.Group}, Resources: []string{"hostedcontrolplanes/status"}, Verbs: []string{"get", "patch", "update"},
	})
	return err
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	pod := &d.Spec.Template.Spec
	if err := kit.SetFeatureGate(ctx, component.Container(pod, "fetch-feature-gate")); err != nil {
		return err
	}
	main := component.Container(pod, Name)
	kit.SetEnv(main, "OPENSHIFT_IMG_OVERRIDES", kit.MapFlag(ctx.RegistryMirrors))
	main.Args = append(main.Args, "--registry-overrides", kit.MapFlag(ctx.RegistryOverrides), "--platform", string(ctx.HCP.Spec.Platform.Type))
	component.ManagementProxy(ctx, main)
	kit.UserTrust(ctx, pod)
	if ctx.HCP.Spec.Platform.Type == hyperv1.IBMCloudPlatform { // no proxy is in front of it
		kit.Volume(pod, "serving-cert").Secret.SecretName = "ignition-server-serving-cert"
	}
	return nil
}

// adaptService publishes the server where no proxy does.
func adaptService(ctx component.WorkloadContext, svc *corev1.Service) error {
	s := endpoints.StrategyFor(ctx.HCP, hyperv1.Ignition)
	if ctx.HCP.Spec.Platform.Type != hyperv1.IBMCloudPlatform || s == nil {
		return nil
	}
	return Publish(s, svc)
}

func byRoute(ctx component.WorkloadContext) (bool, error) {
	s := endpoints.StrategyFor(ctx.HCP, hyperv1.Ignition)
	return s != nil && s.Type == hyperv1.Route, nil
}

func adaptRoute(ctx component.WorkloadContext, route *unstructured.Unstructured) error {
	if err := unstructured.SetNestedField(route.Object, kit.IgnitionService(ctx.HCP), "spec", "to", "name"); err != nil {
		return err
	}
	if kit.Private(ctx.HCP) {
		return kit.InternalRoute(ctx, route)
	}
	host := ""
	if s := endpoints.StrategyFor(ctx.HCP, hyperv1.Ignition); s != nil && s.Route != nil {
		host = string(s.Route.Hostname)
	}
	return kit.ExternalRoute(ctx, route, host)
}
