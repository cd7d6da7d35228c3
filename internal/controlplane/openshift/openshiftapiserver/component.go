// Package openshiftapiserver is the component that serves the aggregated APIs of OpenShift: builds, images, projects, routes, templates and more.
package openshiftapiserver

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component, and of its main container.
const Name = "openshift-apiserver"

const (
	auditVolume = "oas-audit-webhook"
	// serviceSigner is the ConfigMap with the signer of Services of the hosted cluster, which the hosted-cluster-config-operator copies here once
	// there is one. Its volume is called as it has always been: another name would restart the pods.
	serviceSigner, serviceSignerVolume, serviceSignerDir = "service-serving-ca", "kube-controller-manager", "/run/service-ca-signer"
	trustAnchorContainer                                 = "oas-trust-anchor-generator"
)

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{MultiZoneSpread: true}).
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("config.yaml", component.AdaptManifest(adaptConfig)).
		WithManifestAdapter("audit-config.yaml", component.AdaptManifest(kit.AuditConfig)).
		WithManifestAdapter("pdb.yaml", component.AdaptPodDisruptionBudget()).
		InjectAvailabilityProber(component.AvailabilityProber{}).
		InjectKonnectivityContainer(component.KonnectivityProxy{Mode: component.HTTPSProxy}).
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	pod := &d.Spec.Template.Spec
	direct, err := kit.AuthProxyExceptions(ctx.HCP)
	if err != nil {
		return err
	}
	main := component.Container(pod, Name)
	kit.SetEnv(main, "NO_PROXY", direct)
	if !kit.OAuthEnabled(ctx.HCP) {
		main.Args = append(main.Args, "--internal-oauth-disabled=true")
	}
	if err := kit.Audit(ctx, pod, Name, auditVolume); err != nil {
		return err
	}
	if err := kit.TrustBundles(ctx, pod, Name); err != nil {
		return err
	}
	err = ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: serviceSigner}, &corev1.ConfigMap{})
	switch {
	case err == nil:
		kit.Mount(pod, trustAnchorContainer, component.ConfigMapVolume(serviceSignerVolume, serviceSigner), serviceSignerDir)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading ConfigMap %s: %w", serviceSigner, err)
	}
	kit.AddReadinessCheck(ctx, pod)
	return nil
}

func adaptConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	gates, err := kit.FeatureGates(ctx)
	if err != nil {
		return err
	}
	project, err := kit.Observed(ctx, kit.ObservedProject)
	if err != nil {
		return err
	}
	return kit.EditConfig(cm, "config.yaml", func(config map[string]any) error {
		args := kit.Section(config, "apiServerArguments")
		for _, s := range kit.AuditWebhookSettings(ctx) {
			args[s[0]] = kit.List([]string{s[1]})
		}
		args["feature-gates"] = kit.List(withoutWatchList(gates))
		kit.TLSOf(ctx.HCP).ServingInfo(kit.Section(config, "servingInfo"))
		images(ctx.HCP, kit.Section(config, "imagePolicyConfig"))
		kit.Section(config, "routingConfig")["subdomain"] = kit.IngressDomain(ctx.HCP)
		kit.Section(config, "storageConfig")["urls"] = kit.List([]string{kit.EtcdURL(ctx.HCP)})
		if spec, _ := project["spec"].(map[string]any); spec != nil {
			requests(spec, config)
		}
		return nil
	})
}

// withoutWatchList takes a gate away that the server cannot have: its storage doesn't stream lists.
func withoutWatchList(gates []string) []string {
	const gate = "WatchList="
	kept := slices.DeleteFunc(slices.Clone(gates), func(g string) bool { return strings.HasPrefix(g, gate) })
	return append(kept, gate+"false")
}

// images says which registries there are, and from which images may be imported.
func images(hcp *hyperv1.HostedControlPlane, policy map[string]any) {
	if !kit.HasCapability(hcp, hyperv1.ImageRegistryCapability) {
		policy["internalRegistryHostname"] = ""
	}
	c := hcp.Spec.Configuration
	if c == nil || c.Image == nil {
		return
	}
	kit.SetUnlessEmpty(policy, "externalRegistryHostnames", kit.List(c.Image.ExternalRegistryHostnames))
	var allowed []any
	for _, registry := range c.Image.AllowedRegistriesForImport {
		location := map[string]any{"domainName": registry.DomainName}
		if registry.Insecure {
			location["insecure"] = true
		}
		allowed = append(allowed, location)
	}
	kit.SetUnlessEmpty(policy, "allowedRegistriesForImport", allowed)
}

// requests takes over how users ask for projects, from the spec of the hosted cluster's Project "cluster".
func requests(spec, config map[string]any) {
	if message, _ := spec["projectRequestMessage"].(string); message != "" {
		kit.Section(config, "projectConfig")["projectRequestMessage"] = message
	}
	template, _ := spec["projectRequestTemplate"].(map[string]any)
	if name, _ := template["name"].(string); name != "" {
		kit.Section(config, "projectConfig")["projectRequestTemplate"] = "openshift-config/" + name
	}
}
