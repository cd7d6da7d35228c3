package kit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// FeatureGateConfigMap is where the featuregate-generator leaves the FeatureGate of the payload, under FeatureGateKey.
const FeatureGateConfigMap, FeatureGateKey = "feature-gate", "feature-gate.yaml"

// FeatureGateYAML is the FeatureGate of the hosted cluster as the user wants it, for the payload's render tool.
func FeatureGateYAML(hcp *hyperv1.HostedControlPlane) (string, error) {
	spec := configv1.FeatureGateSpec{}
	if c := hcp.Spec.Configuration; c != nil && c.FeatureGate != nil {
		spec = *c.FeatureGate
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": "config.openshift.io/v1", "kind": "FeatureGate", "metadata": map[string]any{"name": "cluster"}, "spec": spec})
	if err != nil {
		return "", fmt.Errorf("writing the FeatureGate: %w", err)
	}
	return string(text), nil
}

// SetPayloadVersion tells a container that renders manifests of the payload of the hosted cluster's version.
func SetPayloadVersion(ctx component.WorkloadContext, c *corev1.Container) {
	SetEnv(c, "PAYLOAD_VERSION", ctx.UserRelease.Version)
}

// SetFeatureGate tells a container of FeatureGateYAML.
func SetFeatureGate(ctx component.WorkloadContext, c *corev1.Container) error {
	text, err := FeatureGateYAML(ctx.HCP)
	if err != nil {
		return err
	}
	SetEnv(c, "FEATURE_GATE_YAML", text)
	return nil
}

// FeatureGates are the gates of the payload as X=true, in the order of the payload, and then Y=false. While the ConfigMap isn't there it is an
// error: the component waits for it. A preview of everything has none then.
func FeatureGates(ctx component.WorkloadContext) ([]string, error) {
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: FeatureGateConfigMap}
	err := ctx.Reader.Get(ctx.Context, key, cm)
	if apierrors.IsNotFound(err) && ctx.Unconditional {
		return nil, nil // a preview that wasn't given it shows the rest
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s, which the featuregate-generator makes: %w", key, err)
	}
	type gates struct {
		Enabled, Disabled []struct{ Name string }
	}
	var gate struct {
		Status struct{ FeatureGates []gates }
	}
	if err := yaml.Unmarshal([]byte(cm.Data[FeatureGateKey]), &gate); err != nil {
		return nil, fmt.Errorf("parsing key %s of ConfigMap %s: %w", FeatureGateKey, key, err)
	}
	var list []string
	if len(gate.Status.FeatureGates) > 0 {
		for _, g := range gate.Status.FeatureGates[0].Enabled {
			list = append(list, g.Name+"=true")
		}
		for _, g := range gate.Status.FeatureGates[0].Disabled {
			list = append(list, g.Name+"=false")
		}
	}
	return list, nil
}
