package checks

import (
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// defaultGates are the gates of the stand-in's payload: whether each is on in the default feature set.
var defaultGates = map[string]bool{"ExternalOIDC": true, "SigstoreImageVerification": true, "MachineConfigNodes": false, "OpenShiftPodSecurityAdmission": false}

// FeatureGate completes a FeatureGate as the payload's render tool does: status says for a version which gates are on. A feature set
// that doesn't exist and a gate that is on and off are errors.
func FeatureGate(raw []byte, version string) ([]byte, error) {
	var gate struct {
		typeMeta `json:",inline"`
		Metadata struct {
			Name              string `json:"name"`
			CreationTimestamp any    `json:"creationTimestamp,omitempty"`
		} `json:"metadata"`
		Spec struct {
			FeatureSet      string `json:"featureSet,omitempty"`
			CustomNoUpgrade *struct {
				Enabled  []string `json:"enabled,omitempty"`
				Disabled []string `json:"disabled,omitempty"`
			} `json:"customNoUpgrade,omitempty"`
		} `json:"spec"`
		Status any `json:"status,omitempty"`
	}
	if err := decode(raw, "config.openshift.io/v1", "FeatureGate", &gate, &gate.typeMeta); err != nil {
		return nil, err
	}
	on := map[string]bool{}
	for name, enabled := range defaultGates {
		on[name] = enabled
	}
	switch gate.Spec.FeatureSet {
	case "", "Default", "OKD":
	case "TechPreviewNoUpgrade", "DevPreviewNoUpgrade":
		on["MachineConfigNodes"] = true
	case "CustomNoUpgrade":
		if c := gate.Spec.CustomNoUpgrade; c != nil {
			for _, name := range c.Enabled {
				if slices.Contains(c.Disabled, name) {
					return nil, fmt.Errorf("spec.customNoUpgrade: gate %s is enabled and disabled; remove it from one list", name)
				}
				on[name] = true
			}
			for _, name := range c.Disabled {
				on[name] = false
			}
		}
	default:
		return nil, fmt.Errorf("spec.featureSet %q doesn't exist; use TechPreviewNoUpgrade, DevPreviewNoUpgrade or CustomNoUpgrade, or leave it out", gate.Spec.FeatureSet)
	}
	lists := map[bool][]map[string]string{}
	for _, name := range sortedKeys(on) {
		lists[on[name]] = append(lists[on[name]], map[string]string{"name": name})
	}
	gate.Status = map[string]any{"featureGates": []map[string]any{{"version": version, "enabled": lists[true], "disabled": lists[false]}}}
	gate.Metadata.CreationTimestamp = nil
	return yaml.Marshal(gate)
}
