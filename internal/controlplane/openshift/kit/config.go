package kit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// EditConfig changes the YAML, or JSON, of one key of a ConfigMap. What is written back has sorted keys: JSON when the name of the key says so.
func EditConfig(cm *corev1.ConfigMap, key string, edit func(config map[string]any) error) error {
	config := map[string]any{}
	if err := yaml.Unmarshal([]byte(cm.Data[key]), &config); err != nil {
		return fmt.Errorf("parsing key %s of ConfigMap %s: %w", key, cm.Name, err)
	}
	if err := edit(config); err != nil {
		return err
	}
	write := yaml.Marshal
	if strings.HasSuffix(key, ".json") {
		write = json.Marshal
	}
	out, err := write(config)
	if err != nil {
		return fmt.Errorf("writing key %s of ConfigMap %s: %w", key, cm.Name, err)
	}
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	cm.Data[key] = string(out)
	return nil
}

// Section returns the map at a path in a configuration, which is made where it isn't there.
func Section(config map[string]any, path ...string) map[string]any {
	for _, key := range path {
		next, ok := config[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			config[key] = next
		}
		config = next
	}
	return config
}

// List is a list of strings as a configuration holds it.
func List(items []string) []any {
	out := make([]any, 0, len(items))
	for _, item := range items {
		out = append(out, item)
	}
	return out
}

// SetUnlessEmpty sets a key of a configuration, unless the value is nothing: an empty string, list or map.
func SetUnlessEmpty(config map[string]any, key string, value any) {
	if value == nil {
		return
	}
	if v := reflect.ValueOf(value); (v.Kind() == reflect.String && v.Len() == 0) || ((v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0) {
		return
	}
	config[key] = value
}

// IngressIPRange sets the range that Services of type LoadBalancer get addresses from, the first that the network's configuration names.
func IngressIPRange(hcp *hyperv1.HostedControlPlane, config map[string]any) {
	c := hcp.Spec.Configuration
	if c == nil || c.Network == nil || c.Network.ExternalIP == nil || len(c.Network.ExternalIP.AutoAssignCIDRs) == 0 {
		return
	}
	Section(config, "ingress")["ingressIPNetworkCIDR"] = c.Network.ExternalIP.AutoAssignCIDRs[0]
}
