package local

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/network"
)

// Settings are what "up" is asked for.
type Settings struct {
	Root              string // the checkout
	StateDir          string // absolute
	KubernetesVersion string // of the management cluster and the demo, e.g. "1.36.3"
	Releases          []string
	RefreshReleases   bool // build release images anew although the registry has them
	SkipDemo          bool
	SkipInstall       bool
	SkipBuild         bool // use the programs in bin/ as they are
	PodEgress         bool
	Timeout           time.Duration
}

// DefaultKubernetesVersion is what "up" runs unless told otherwise.
const DefaultKubernetesVersion = "1.36.3"

func (s Settings) paths() components.Paths { return components.Paths{State: s.StateDir} }

// supervisorConfig is what the supervisor reads when it starts.
type supervisorConfig struct {
	KubernetesBinary string          `json:"kubernetesBinary"`
	Network          network.Options `json:"network"`
}

func (s Settings) supervisorConfig(binary string) supervisorConfig {
	return supervisorConfig{KubernetesBinary: binary, Network: network.Options{PodEgress: s.PodEgress}}
}

func readConfig(p components.Paths) (supervisorConfig, error) {
	c := supervisorConfig{}
	data, err := os.ReadFile(p.Config())
	if err != nil {
		return c, fmt.Errorf("reading the supervisor's configuration: %w", err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("decoding %s: %w", p.Config(), err)
	}
	return c, nil
}

func (c supervisorConfig) write(p components.Paths) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the supervisor's configuration: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(p.Config()), 0o700); err != nil {
		return fmt.Errorf("creating the state folder: %w", err)
	}
	if err := os.WriteFile(p.Config(), data, 0o600); err != nil {
		return fmt.Errorf("writing the supervisor's configuration: %w", err)
	}
	return nil
}
