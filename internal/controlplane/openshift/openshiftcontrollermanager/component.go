// Package openshiftcontrollermanager is the component that runs OpenShift's controllers for builds, deployments and image pull secrets.
package openshiftcontrollermanager

import (
	"embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "openshift-controller-manager"

const configKey = "config.yaml"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{MultiZoneSpread: true}).
		WithDependencies("openshift-apiserver").
		WithManifestAdapter("config.yaml", component.AdaptManifest(adaptConfig)).
		WithManifestAdapter("service.yaml", component.DisableIfAnnotationExist(hyperv1.DisableMonitoringServices)).
		Build()
}

func adaptConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	gates, err := kit.FeatureGates(ctx)
	if err != nil {
		return err
	}
	return kit.EditConfig(cm, configKey, func(config map[string]any) error {
		kit.Section(config, "build", "imageTemplateFormat")["format"] = kit.Image(ctx, "docker-builder")
		kit.Section(config, "deployer", "imageTemplateFormat")["format"] = kit.Image(ctx, "deployer")
		if err := images(ctx, cm, config); err != nil {
			return err
		}
		if err := builds(ctx, config); err != nil {
			return err
		}
		kit.IngressIPRange(ctx.HCP, config)
		kit.TLSOf(ctx.HCP).ServingInfo(kit.Section(config, "servingInfo"))
		config["featureGates"] = kit.List(gates)
		return nil
	})
}

// images says which registries there are. Which controllers run is decided by the hosted-cluster-config-operator, in the live object; without the
// hosted cluster's own registry it is decided here.
func images(ctx component.WorkloadContext, cm *corev1.ConfigMap, config map[string]any) error {
	secrets := kit.Section(config, "dockerPullSecret")
	if c := ctx.HCP.Spec.Configuration; c != nil && c.Image != nil && len(c.Image.ExternalRegistryHostnames) > 0 {
		secrets["registryURLs"] = kit.List(c.Image.ExternalRegistryHostnames)
	}
	if !kit.HasCapability(ctx.HCP, hyperv1.ImageRegistryCapability) {
		config["controllers"] = kit.List([]string{"*", "-openshift.io/serviceaccount-pull-secrets"})
		secrets["internalRegistryHostname"] = ""
		return nil
	}
	live := &corev1.ConfigMap{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: cm.Name}, live)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the live ConfigMap %s: %w", cm.Name, err)
	}
	was := map[string]any{}
	if err := yaml.Unmarshal([]byte(live.Data[configKey]), &was); err != nil {
		return nil //nolint:nilerr // because what somebody broke is written anew
	}
	if controllers, ok := was["controllers"].([]any); ok && len(controllers) > 0 {
		config["controllers"] = controllers
	}
	return nil
}

// builds takes over what the hosted cluster's Build says.
func builds(ctx component.WorkloadContext, config map[string]any) error {
	build, err := kit.Observed(ctx, kit.ObservedBuild)
	if err != nil {
		return err
	}
	from, over := kit.Section(build, "spec", "buildDefaults"), kit.Section(build, "spec", "buildOverrides")
	defaults, overrides := map[string]any{}, map[string]any{}
	if from["gitProxy"] != nil { // which switches it on; the values are those of the default proxy
		for key, of := range map[string]string{"gitHTTPProxy": "httpProxy", "gitHTTPSProxy": "httpsProxy", "gitNoProxy": "noProxy"} {
			kit.SetUnlessEmpty(defaults, key, kit.Section(from, "defaultProxy")[of])
		}
	}
	for _, key := range []string{"env", "imageLabels", "resources"} {
		kit.SetUnlessEmpty(defaults, key, from[key])
	}
	for _, key := range []string{"forcePull", "imageLabels", "nodeSelector", "tolerations"} {
		kit.SetUnlessEmpty(overrides, key, over[key])
	}
	kit.SetUnlessEmpty(kit.Section(config, "build"), "buildDefaults", defaults)
	kit.SetUnlessEmpty(kit.Section(config, "build"), "buildOverrides", overrides)
	return nil
}
