package etcdinit

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/atomicfile"
)

// maxTemplate bounds the template file; a real one has 2 KiB.
const maxTemplate = 1 << 20

// Keys of etcd's configuration file that are read or written here.
const (
	keyName           = "name"
	keyDataDir        = "data-dir"
	keyInitialCluster = "initial-cluster"
	keyInitialState   = "initial-cluster-state"
	keyToken          = "initial-cluster-token"
)

// ClusterState is what etcd must be told about the cluster that it starts in.
type ClusterState string

// The states that etcd knows.
const (
	StateNew      ClusterState = "new"
	StateExisting ClusterState = "existing"
)

// Config is etcd's configuration file.
type Config map[string]any

// Settings is what a configuration says about the member itself.
type Settings struct {
	Self     Peer
	Founders []Peer // everybody of initial-cluster, Self too
	DataDir  string
}

// Load reads a configuration template and the settings in it. A non-empty name or dataDir overrides the template's.
func Load(template, name, dataDir string) (Config, Settings, error) {
	cfg, err := readConfig(template)
	if err != nil {
		return nil, Settings{}, err
	}
	if name != "" {
		cfg[keyName] = name
	}
	if dataDir != "" {
		cfg[keyDataDir] = dataDir
	}
	s := Settings{DataDir: cfg.text(keyDataDir)}
	if s.DataDir == "" {
		return nil, Settings{}, fmt.Errorf("%s must be set in the configuration template or by --data-dir", keyDataDir)
	}
	if s.Founders, err = cfg.members(); err != nil {
		return nil, Settings{}, err
	}
	i := slices.IndexFunc(s.Founders, func(p Peer) bool { return p.Name == cfg.text(keyName) })
	if i < 0 {
		return nil, Settings{}, fmt.Errorf("member %q is not in %s of the configuration template", cfg.text(keyName), keyInitialCluster)
	}
	s.Self = s.Founders[i]
	return cfg, s, nil
}

// InitialCluster is the template's list of founding members.
func (c Config) InitialCluster() string { return c.text(keyInitialCluster) }

// Token is the template's cluster token.
func (c Config) Token() string { return c.text(keyToken) }

var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// parseConfig expands $(VAR) references with lookup and parses the result. An unknown variable is an error: an etcd that
// starts with an empty address would be worse than one that doesn't start.
func parseConfig(template string, lookup func(string) (string, bool)) (Config, error) {
	var missing []string
	text := reference.ReplaceAllStringFunc(template, func(match string) string {
		name := reference.FindStringSubmatch(match)[1]
		value, ok := lookup(name)
		if !ok {
			missing = append(missing, name)
		}
		return value
	})
	if len(missing) > 0 {
		return nil, fmt.Errorf("expanding the configuration template: not in the environment: %s", strings.Join(slices.Compact(missing), ", "))
	}
	c := Config{}
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		return nil, fmt.Errorf("parsing the configuration template: %w", err)
	}
	return c, nil
}

func readConfig(path string) (Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the configuration template: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxTemplate))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration template: %w", err)
	}
	return parseConfig(string(raw), os.LookupEnv)
}

func (c Config) text(key string) string {
	s, _ := c[key].(string)
	return s
}

// members parses initial-cluster: name=url pairs.
func (c Config) members() ([]Peer, error) {
	var peers []Peer
	for pair := range strings.SplitSeq(c.text(keyInitialCluster), ",") {
		name, url, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || name == "" || url == "" {
			return nil, fmt.Errorf("%s of the configuration: %q is not name=url", keyInitialCluster, pair)
		}
		peers = append(peers, Peer{Name: name, URL: url})
	}
	return peers, nil
}

// write stores the configuration in one step: etcd never sees a part.
func (c Config) write(path string) error {
	raw, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Errorf("encoding the configuration: %w", err)
	}
	return writeFile(path, raw)
}

// writeFile lets the group read it, too: etcd may run as another user of the pod. It has no secrets.
func writeFile(path string, raw []byte) error { return atomicfile.Write(path, raw, 0o640) }
