package openshift

import (
	"encoding/base64"
	"errors"
	"maps"
	"slices"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/pki"
)

// identityWebhooks have pods get the token that the cloud takes for an identity. The webhook runs beside kube-apiserver, hence the address.
func identityWebhooks(in Input) ([]Action, error) {
	if !in.on(hyperv1.AWSPlatform, hyperv1.AzurePlatform) {
		return nil, nil
	}
	authority := in.configMap(pki.RootCABundle, pki.CACertKey)
	if authority == "" {
		return nil, errors.New("ConfigMap root-ca of the control plane namespace has no ca.crt yet")
	}
	rules := []any{map[string]any{"apiGroups": list(""), "apiVersions": list("v1"), "operations": list("CREATE"), "resources": list("pods"), "scope": "*"}}
	account, configuration := "aws-pod-identity-webhook", "aws-pod-identity"
	webhook := map[string]any{"name": "pod-identity-webhook.amazonaws.com", "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": list("v1beta1"), "rules": rules}
	url := "https://127.0.0.1:4443/mutate"
	if in.on(hyperv1.AzurePlatform) {
		account, configuration, url = "azure-workload-identity-webhook", "azure-workload-identity-webhook", "https://127.0.0.1:9443/mutate-v1-pod"
		webhook = map[string]any{
			"name": "pod-identity-webhook.azure.mutate.io", "failurePolicy": "Ignore", "matchPolicy": "Equivalent", "reinvocationPolicy": "IfNeeded", "sideEffects": "None",
			"admissionReviewVersions": list("v1", "v1beta1"), "rules": rules,
			"objectSelector": map[string]any{"matchLabels": map[string]any{"azure.workload.identity/use": "true"}},
		}
	}
	webhook["clientConfig"] = map[string]any{"url": url, "caBundle": base64.StdEncoding.EncodeToString([]byte(authority))}
	role := object(rbacV1, "ClusterRole", "", account, map[string]any{"rules": []any{map[string]any{
		"apiGroups": list(""), "resources": list("serviceaccounts"), "verbs": list("get", "list", "watch"),
	}}})
	binding := object(rbacV1, "ClusterRoleBinding", "", account, map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": "openshift-authentication", "name": account}},
	})
	return apply(role, binding, object(admissionV1, "MutatingWebhookConfiguration", "", configuration, map[string]any{"webhooks": []any{webhook}})), nil
}

// azureNodes have nodes on Azure labelled with their place: its cloud controller manager leaves that to a program on each.
func azureNodes(in Input) ([]Action, error) {
	if !in.on(hyperv1.AzurePlatform) {
		return nil, nil
	}
	const tag = "azure-cloud-node-manager"
	image, ok := in.Release.ImageFor(tag)
	if !ok {
		return nil, errors.New("the release has no image " + tag)
	}
	objects := load("azure-cloud-node-manager.yaml")
	containerOf(find(objects, "DaemonSet"))["image"] = image
	return apply(objects...), nil
}

// volumeRecycler is the account that pods have which kube-controller-manager empties volumes with.
func volumeRecycler(Input) ([]Action, error) {
	return apply(reference(core, "ServiceAccount", "openshift-infra", "pv-recycler-controller")), nil
}

// userTrust are the authorities that the user wants trusted everywhere.
func userTrust(in Input) ([]Action, error) {
	if in.HCP.Spec.AdditionalTrustBundle == nil {
		return []Action{remove(core, "ConfigMap", openshiftConfig, names.UserCABundle)}, nil
	}
	cm := in.Control.ConfigMaps[names.UserCABundle]
	if cm == nil {
		return nil, errors.New("ConfigMap user-ca-bundle is not in the control plane namespace yet")
	}
	return apply(configMap(openshiftConfig, names.UserCABundle, cm.Data)), nil
}

// Labels of ConfigMaps with settings of kubelets, and of their copies.
const (
	kubeletConfigLabel = "hypershift.openshift.io/kubeletconfig-config"
	nodePoolLabel      = "hypershift.openshift.io/nodePool"
	// maxKubelets bounds how many there may be.
	maxKubelets = 500
)

// kubeletConfigs are copies of the settings of kubelets, for the node tuning operator. Copies of NodePools that are gone go, too.
func kubeletConfigs(in Input) ([]Action, error) {
	var actions []Action
	present, pools := map[string]bool{}, map[string]bool{}
	for i := range in.Control.Kubelets {
		cm := &in.Control.Kubelets[i]
		present[cm.Name], pools[cm.Labels[nodePoolLabel]] = true, true
		o := configMap(managedConfig, cm.Name, cm.Data)
		labels := map[string]string{kubeletConfigLabel: "true", mirroredConfigLabel: "true"}
		if pool := cm.Labels[nodePoolLabel]; pool != "" {
			labels[nodePoolLabel] = pool
		}
		o.SetLabels(labels)
		if cm.Immutable != nil && *cm.Immutable {
			o.Object["immutable"] = true
		}
		actions = append(actions, apply(o)...)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Hosted.Kubelets)) {
		if copied := in.Hosted.Kubelets[name]; !present[name] && !(copied.Mirrored && pools[copied.NodePool]) {
			actions = append(actions, remove(core, "ConfigMap", managedConfig, name))
		}
	}
	return actions, nil
}

// leftovers are what earlier versions ran in the hosted cluster, and now runs in the control plane. It goes once the hosted cluster runs the release.
func leftovers(in Input) ([]Action, error) {
	version := in.Hosted.Objects[versionKey]
	if in.Cleared || text(version, "status", "desired", "version") != in.Release.Version {
		return nil, nil
	}
	actions := []Action{remove("apps/v1", "Deployment", "openshift-dns-operator", "dns-operator")}
	for _, l := range payload.Leftovers(in.HCP) {
		actions = append(actions, remove(l.APIVersion, l.Kind, l.Namespace, l.Name))
	}
	return actions, nil
}

// Clears says whether the plan for this input removes leftovers, which is done once by each process.
func Clears(in Input) bool {
	actions, _ := leftovers(in)
	return len(actions) > 0
}

// versionKey is where Hosted has the ClusterVersion.
const versionKey = "ClusterVersion /version"
