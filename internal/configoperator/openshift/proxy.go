package openshift

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/contract/names"
)

// proxyAnnotation is settingAnnotation of a Proxy: the published operator has this one, too.
const proxyAnnotation = "hypershift.io/hosted-cluster-proxy-config"

// proxyConfig is the proxy to the outside, with the authorities to trust behind it.
func proxyConfig(in Input) ([]Action, error) {
	wanted := in.configuration().Proxy
	actions := []Action{edit(configV1, "Proxy", "", cluster, func(live map[string]any) { take(live, proxyAnnotation, wanted) })}
	name := ""
	if wanted != nil {
		name = wanted.TrustedCA.Name
	}
	live := in.Hosted.Objects[proxyKey]
	if live == nil {
		if name == "" {
			return actions, nil
		}
		return actions, errors.New("proxy cluster isn't in the hosted cluster yet; its trustedCA is copied then")
	}
	// What the Proxy named until now, when it was us who had it so. Names of the hosted cluster's own choice are never deleted.
	if old := text(live, "spec", "trustedCA", "name"); old != "" && old != name && peek(live, "metadata", "annotations")[proxyAnnotation] == "true" && old != names.UserCABundle {
		actions = append(actions, remove(core, "ConfigMap", "openshift-config", old))
		actions[len(actions)-1].Do = DeleteOwn
	}
	if name == "" {
		return actions, nil
	}
	cm := in.Control.ConfigMaps[name]
	if cm == nil {
		return actions, fmt.Errorf("configuration.proxy.trustedCA names ConfigMap %s, which is not in the control plane namespace", name)
	}
	return append(actions, apply(configMap("openshift-config", name, cm.Data))...), nil
}

// proxyKey is where Hosted has the Proxy.
const proxyKey = "Proxy /cluster"

// controllerTrust gives openshift-controller-manager's builds the authorities behind the proxy, and those that sign Services.
func controllerTrust(in Input) ([]Action, error) {
	const namespace, user = "openshift-controller-manager", "openshift-user-ca"
	service := annotate(reference(core, "ConfigMap", namespace, "openshift-service-ca"), "service.beta.openshift.io/inject-cabundle", "true")
	var cm *corev1.ConfigMap
	if p := in.configuration().Proxy; p != nil && p.TrustedCA.Name != "" {
		cm = in.Control.ConfigMaps[p.TrustedCA.Name]
	}
	actions := apply(service)
	if cm == nil {
		return append(actions, remove(core, "ConfigMap", namespace, user)), nil
	}
	return append(actions, apply(configMap(namespace, user, cm.Data))...), nil
}
