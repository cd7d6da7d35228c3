package openshift

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/pki"
)

const (
	monitoringNamespace = "openshift-monitoring"
	forwarderName       = "control-plane-metrics-forwarder"
	forwarderConfig     = "metrics-forwarder-config"
	// forwarderChecksum has the pod start anew when its configuration changes: haproxy reads it once.
	forwarderChecksum = "metrics-forwarder-config-checksum"
	// metricsProxyConfig is the ConfigMap of the control plane that lists whose metrics there are.
	metricsProxyConfig = "metrics-proxy-config"
	// metricsProxyCA is the ConfigMap of the hosted cluster with the authority of the control plane's metrics.
	metricsProxyCA = "metrics-proxy-serving-ca"
	// maxForwarded bounds the components. A control plane has some fifty.
	maxForwarded = 200
)

// haproxyConfig passes connections on as they are: the certificates of both ends are those of Prometheus and the control plane.
const haproxyConfig = `defaults
  mode tcp
  timeout connect 5s
  timeout client 30s
  timeout server 30s

frontend metrics
  bind *:9443
  default_backend control-plane

backend control-plane
  server metrics-proxy %s:443
`

// metricsForwarder has the hosted cluster's Prometheus see the metrics of its control plane: connections to a pod end at the control plane's metrics-proxy.
// It waits without a word for what the control plane's components make: the name of the Route, the authority, and the list of components.
func metricsForwarder(in Input) ([]Action, error) {
	objects := load("metrics-forwarder.yaml")
	deployment, monitor := find(objects, "Deployment"), find(objects, "PodMonitor")
	if !payload.ForwardsMetrics(in.HCP) {
		return []Action{
			remove(monitoringV1, "PodMonitor", monitoringNamespace, forwarderName), remove("apps/v1", "Deployment", monitoringNamespace, forwarderName),
			remove(core, "ConfigMap", monitoringNamespace, forwarderConfig), remove(core, "ConfigMap", monitoringNamespace, metricsProxyCA),
		}, nil
	}
	names, err := forwarded(in.configMap(metricsProxyConfig, "config.yaml"))
	var authority string
	if s := in.secret(pki.MetricsProxyCA); s != nil {
		authority = string(s.Data["tls.crt"])
	}
	if err != nil || in.MetricsHost == "" || authority == "" || len(names) == 0 {
		return nil, err
	}
	if problems := validation.IsDNS1123Subdomain(in.MetricsHost); len(problems) > 0 {
		return nil, fmt.Errorf("the host %q of Route metrics-proxy is no DNS name: %s", in.MetricsHost, strings.Join(problems, ", "))
	}
	image, ok := in.Release.ImageFor("haproxy-router")
	if !ok {
		return nil, errors.New("the release has no image haproxy-router, which passes the metrics of the control plane on")
	}
	config := fmt.Sprintf(haproxyConfig, in.MetricsHost)
	sum := sha256.Sum256([]byte(config))
	section(deployment.Object, "spec", "template", "metadata", "annotations")[forwarderChecksum] = hex.EncodeToString(sum[:])
	containerOf(deployment)["image"] = image
	var endpoints []any
	for _, name := range names {
		endpoints = append(endpoints, map[string]any{
			"port": "metrics", "path": "/metrics/" + name, "scheme": "https", "honorLabels": true,
			"tlsConfig": map[string]any{"serverName": in.MetricsHost, "ca": map[string]any{"configMap": map[string]any{"name": metricsProxyCA, "key": pki.CACertKey}}},
		})
	}
	section(monitor.Object, "spec")["podMetricsEndpoints"] = endpoints
	actions := apply(
		configMap(monitoringNamespace, forwarderConfig, map[string]string{"haproxy.cfg": config}),
		configMap(monitoringNamespace, metricsProxyCA, map[string]string{pki.CACertKey: authority}), deployment, monitor)
	for i := range actions {
		actions[i].AwaitsNamespace = true // the cluster-version-operator makes it
	}
	return actions, nil
}

// forwarded are the components whose metrics the control plane offers, sorted. The list is our own component's, and is checked all the same: names become paths.
func forwarded(config string) ([]string, error) {
	var parsed struct {
		Components []struct {
			Name string `json:"name"`
		} `json:"components"`
	}
	if err := yaml.Unmarshal([]byte(config), &parsed); err != nil {
		return nil, fmt.Errorf("config.yaml of ConfigMap %s in the control plane namespace is no YAML", metricsProxyConfig)
	}
	var names []string
	for _, c := range parsed.Components {
		if problems := validation.IsDNS1123Subdomain(c.Name); len(problems) > 0 {
			return nil, fmt.Errorf("config.yaml of ConfigMap %s in the control plane namespace: %q is no name of a component", metricsProxyConfig, c.Name)
		}
		names = append(names, c.Name)
	}
	if len(names) > maxForwarded {
		return nil, fmt.Errorf("config.yaml of ConfigMap %s in the control plane namespace lists %d components, more than %d", metricsProxyConfig, len(names), maxForwarded)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
