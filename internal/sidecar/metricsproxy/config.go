// Package metricsproxy serves the metrics of a control plane to its hosted cluster: each component at a path of its own, all of its pods together.
package metricsproxy

import (
	"errors"
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/yaml"
)

// maxConfig bounds the configuration. A control plane has some fifty components.
const maxConfig = 1 << 20

// config is what the control-plane-operator writes.
type config struct {
	EndpointResolver struct {
		URL    string `json:"url"`
		CAFile string `json:"caFile"`
	} `json:"endpointResolver"`
	Components []target `json:"components"`
}

// target is how a component is scraped.
type target struct {
	Name             string            `json:"name"`
	Selector         map[string]string `json:"selector"`
	MetricsPort      int32             `json:"metricsPort"`
	MetricsPath      string            `json:"metricsPath"`
	MetricsScheme    string            `json:"metricsScheme"`
	TLSServerName    string            `json:"tlsServerName"`
	CAFile           string            `json:"caFile"`
	CertFile         string            `json:"certFile"`
	KeyFile          string            `json:"keyFile"`
	MetricsJob       string            `json:"metricsJob"`
	MetricsNamespace string            `json:"metricsNamespace"`
	MetricsService   string            `json:"metricsService"`
	MetricsEndpoint  string            `json:"metricsEndpoint"`
}

// readConfig reads the file as it is now: it follows the control plane. Without the file there are no components.
func readConfig(file string) (config, error) {
	var c config
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("reading the configuration: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(raw) > maxConfig {
		err = fmt.Errorf("it is longer than %d bytes", maxConfig)
	}
	if err == nil {
		err = yaml.Unmarshal(raw, &c)
	}
	if err != nil {
		return c, fmt.Errorf("reading the configuration %s: %w", file, err)
	}
	return c, nil
}

// find is the component of a name.
func (c config) find(name string) (target, bool) {
	for _, t := range c.Components {
		if t.Name == name {
			return t, true
		}
	}
	return target{}, false
}
