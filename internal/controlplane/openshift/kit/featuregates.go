package kit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/controlplane/component"
)

// FeatureGateConfigMap is where the featuregate-generator leaves the FeatureGate of the payload, under FeatureGateKey.
const FeatureGateConfigMap, FeatureGateKey = "feature-gate", "feature-gate.yaml"

// FeatureGates are the gates of the payload as X=true, in the order of the payload, and then Y=false. While the ConfigMap isn't there it is an
// error: the component waits for it.
func FeatureGates(ctx component.WorkloadContext) ([]string, error) {
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: FeatureGateConfigMap}
	if err := ctx.Reader.Get(ctx.Context, key, cm); err != nil {
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
