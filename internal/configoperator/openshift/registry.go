package openshift

import (
	"encoding/hex"
	"slices"

	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

const (
	imageRegistryV1 = "imageregistry.operator.openshift.io/v1"
	// registryFinalizer lets the registry's operator remove the storage before its settings go.
	registryFinalizer = "imageregistry.operator.openshift.io/finalizer"
	// pullSecretsOff switches the controller off that gives ServiceAccounts credentials of the registry.
	pullSecretsOff = "-openshift.io/serviceaccount-pull-secrets"
	// controllerManagerConfig is the ConfigMap of the control plane with the configuration of openshift-controller-manager.
	controllerManagerConfig = "openshift-controller-manager-config"
	// httpSecretBytes are what replicas of the registry sign the state of uploads with.
	httpSecretBytes = 64
)

// imageRegistry are the settings of the registry. Some are given at the start only: from then on they are the hosted cluster's.
func imageRegistry(in Input) ([]Action, error) {
	var actions []Action
	if in.has(hyperv1.ImageRegistryCapability) {
		a := edit(imageRegistryV1, "Config", "", cluster, func(live map[string]any) { registryConfig(in, live) })
		if in.on(hyperv1.OpenStackPlatform) {
			a.Do = EditPresent // its operator chooses the storage
		}
		actions = append(actions, a)
	}
	// Without the capability the control-plane-operator decides.
	if in.has(hyperv1.ImageRegistryCapability) && !in.on(hyperv1.IBMCloudPlatform, hyperv1.AzurePlatform) {
		removed := text(in.Hosted.Objects[registryKey], "spec", "managementState") == "Removed"
		actions = append(actions, Action{
			Do: EditPresent, Management: true, Object: reference(core, "ConfigMap", in.HCP.Namespace, controllerManagerConfig),
			Change: func(live map[string]any) { switchPullSecrets(live, removed) },
		})
	}
	if image := in.configuration().Image; image != nil && image.AdditionalTrustedCA.Name != "" {
		if cm := in.Control.ConfigMaps[image.AdditionalTrustedCA.Name]; cm != nil {
			actions = append(actions, apply(configMap(openshiftConfig, image.AdditionalTrustedCA.Name, cm.Data))...)
		}
	}
	return actions, nil
}

// registryKey is where Hosted has the settings of the registry.
const registryKey = "Config /cluster"

func registryConfig(in Input, live map[string]any) {
	fresh := text(live, "metadata", "resourceVersion") == ""
	finalizers, _ := section(live, "metadata")["finalizers"].([]any)
	if !slices.Contains(finalizers, any(registryFinalizer)) {
		section(live, "metadata")["finalizers"] = append(finalizers, registryFinalizer)
	}
	spec := section(live, "spec")
	if fresh {
		spec["replicas"] = replicas(in)
		if in.on(hyperv1.KubevirtPlatform, hyperv1.NonePlatform) {
			spec["storage"] = map[string]any{"emptyDir": map[string]any{}}
		}
	}
	if cos, chosen := peek(spec, "storage")["ibmcos"].(map[string]any); in.on(hyperv1.IBMCloudPlatform) && (fresh || chosen && isEmpty(cos)) {
		spec["replicas"], spec["managementState"] = int64(1), "Removed"
		spec["storage"] = map[string]any{"emptyDir": map[string]any{}}
	}
	setIfEmpty(spec, "managementState", "Managed")
	setIfEmpty(spec, "httpSecret", hex.EncodeToString(in.Random(httpSecretBytes)))
}

// replicas of what the hosted cluster runs for itself.
func replicas(in Input) int64 {
	if in.highlyAvailable() {
		return 2
	}
	return 1
}

// switchPullSecrets has ServiceAccounts get credentials of the registry while there is one. Of the configuration nothing else is touched.
func switchPullSecrets(live map[string]any, off bool) {
	data := peek(live, "data")
	raw, _ := data["config.yaml"].(string)
	config := map[string]any{}
	if err := yaml.Unmarshal([]byte(raw), &config); err != nil || len(config) == 0 {
		return // the control-plane-operator writes it anew
	}
	controllers, _ := config["controllers"].([]any)
	if slices.Contains(controllers, any(pullSecretsOff)) == off {
		return
	}
	if off {
		if len(controllers) == 0 {
			controllers = []any{"*"}
		}
		controllers = append(controllers, pullSecretsOff)
	} else {
		controllers = slices.DeleteFunc(controllers, func(c any) bool { return c == pullSecretsOff })
	}
	config["controllers"] = controllers
	if changed, err := yamlText(config); err == nil {
		data["config.yaml"] = changed
	}
}
