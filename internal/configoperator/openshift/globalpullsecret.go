package openshift

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Secrets in kube-system of the hosted cluster: the user's own credentials, those of the control plane, and both together.
const (
	systemNamespace      = "kube-system"
	additionalPullSecret = "additional-pull-secret"
	originalPullSecret   = "original-pull-secret"
	globalPullSecret     = "global-pull-secret"
	// globalHashLabel on pods has them start anew with new credentials.
	globalHashLabel = "globalps-config-hash"
	// globalHashLength keeps the hash within a label.
	globalHashLength = 32

	additionalKey = "Secret " + systemNamespace + "/" + additionalPullSecret
)

// globalPullSecrets gives nodes of pools with upgrade type Replace the credentials that the hosted cluster's administrator adds to those of the control
// plane: in Secret additional-pull-secret of kube-system. For a registry that both know, the control plane's hold. Elsewhere than on AWS and Azure machines
// don't get the label that the DaemonSet looks for.
func globalPullSecrets(in Input) ([]Action, error) {
	if !in.on(hyperv1.AWSPlatform, hyperv1.AzurePlatform) {
		return nil, nil
	}
	pull := in.secret(in.HCP.Spec.PullSecret.Name)
	if pull == nil || len(pull.Data[corev1.DockerConfigJsonKey]) == 0 {
		return nil, nil // "pull secrets" says so
	}
	if in.OperatorImage == "" {
		return nil, errors.New("env HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE, the image that gives nodes their pull secret, is empty")
	}
	original := pull.Data[corev1.DockerConfigJsonKey]
	docker := func(name string, content []byte) Action {
		return apply(secret(systemNamespace, name, corev1.SecretTypeDockerConfigJson, map[string][]byte{corev1.DockerConfigJsonKey: content}))[0]
	}
	actions := []Action{docker(originalPullSecret, original)}
	content := original
	switch live := in.Hosted.Objects[additionalKey]; {
	case live == nil:
		actions = append(actions, remove(core, "Secret", systemNamespace, globalPullSecret))
	default:
		merged, err := mergedPullSecret(original, live)
		if err != nil {
			return actions, err // nodes keep what they have
		}
		content, actions = merged, append(actions, docker(globalPullSecret, merged))
	}
	objects := load("global-pull-secret.yaml")
	daemons := find(objects, "DaemonSet")
	containerOf(daemons)["image"] = in.OperatorImage
	sum := sha256.Sum256(content)
	section(daemons.Object, "spec", "template", "metadata", "labels")[globalHashLabel] = hex.EncodeToString(sum[:])[:globalHashLength]
	return append(actions, apply(objects...)...), nil
}

// errAdditional speaks of a Secret of the hosted cluster in words of ours alone.
func errAdditional(what string) error {
	return fmt.Errorf("%s of the hosted cluster %s; nodes keep their pull secret. Write it as `kubectl create secret docker-registry` does, or delete it", additionalKey, what)
}

// mergedPullSecret are the credentials of the control plane, and those of the user for other registries.
func mergedPullSecret(original []byte, live map[string]any) ([]byte, error) {
	encoded := text(live, "data", corev1.DockerConfigJsonKey)
	if kind, _ := live["type"].(string); kind != string(corev1.SecretTypeDockerConfigJson) || encoded == "" {
		return nil, errAdditional("is not of type kubernetes.io/dockerconfigjson with key .dockerconfigjson")
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errAdditional("is not encoded in base64")
	}
	var added struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if err := json.Unmarshal(raw, &added); err != nil {
		return nil, errAdditional("is no JSON of the form {\"auths\": {REGISTRY: {\"auth\": …}}}")
	}
	if len(added.Auths) == 0 {
		return nil, errAdditional("has no auths")
	}
	merged, auths := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := json.Unmarshal(original, &merged); err != nil {
		return nil, errors.New("the pull secret of the control plane is no JSON object")
	}
	if own := merged["auths"]; own != nil {
		if err := json.Unmarshal(own, &auths); err != nil {
			return nil, errors.New("auths of the pull secret of the control plane is no JSON object")
		}
	}
	for registry, credentials := range added.Auths {
		var checked struct {
			Auth string `json:"auth"`
		}
		if err := json.Unmarshal(credentials, &checked); err != nil || checked.Auth == "" {
			return nil, errAdditional("has credentials without a text auth")
		}
		if _, known := auths[registry]; !known {
			auths[registry] = credentials
		}
	}
	if merged["auths"], err = json.Marshal(auths); err != nil {
		return nil, errAdditional("can't be encoded")
	}
	content, err := json.Marshal(merged)
	if err != nil {
		return nil, errAdditional("can't be encoded")
	}
	if len(content) > corev1.MaxSecretSize {
		return nil, errAdditional("is too long to be merged with that of the control plane")
	}
	return content, nil
}
