package nodeconfig

import (
	"cmp"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
)

// ownedPaths are files, and folders with all that is in them, which machines need as they get them.
var ownedPaths = []string{
	"/etc/cni/net.d", "/etc/containerd/certs.d", "/etc/containerd/config.toml", "/etc/kubernetes", "/opt/cni", "/run", "/usr/local/bin/kubelet",
	"/usr/local/libexec/kubernetes", "/var/lib/containerd", "/var/lib/kubelet",
}

// OwnedUnits are made by the payload; MachineConfigs may add drop-ins to them.
var OwnedUnits = []string{"containerd.service", "kubelet-install.service", "kubelet.service"}

// Owned reports whether a path belongs to the payload itself, and MachineConfigs must not write there.
func Owned(p string) bool {
	p = path.Clean(p)
	return slices.ContainsFunc(ownedPaths, func(owned string) bool { return p == owned || strings.HasPrefix(p, owned+"/") })
}

// merger puts MachineConfigs together. Unlike in OpenShift, the last one does not win: two that disagree are a mistake which nobody
// would notice otherwise.
type merger struct {
	found *problems
	nodes map[string]node // by path
	units map[string]*unit
	keys  map[string]bool // of the user core
	count int
}

// node is a file, directory or link.
type node struct {
	from  item
	value any // ignition.File, ignition.Directory or ignition.Link
}

// unit is a unit with the items that its parts come from.
type unit struct {
	ignition.Unit
	contents, state item
	dropins         map[string]node
}

func newMerger(found *problems) *merger {
	return &merger{found: found, nodes: map[string]node{}, units: map[string]*unit{}, keys: map[string]bool{}}
}

func conflict(other item, what string) error { return fmt.Errorf("it conflicts: %s %s", other, what) }

func (m *merger) add(i item, cfg ignition.Config) error {
	s := cfg.Storage
	if m.count += len(s.Files) + len(s.Directories) + len(s.Links) + len(cfg.Systemd.Units); m.count > maxEntries {
		return fmt.Errorf("more than %d files, directories, links and units in all", maxEntries)
	}
	for _, f := range s.Files {
		m.found.at(i, m.node(i, f.Path, f))
	}
	for _, d := range s.Directories {
		m.found.at(i, m.node(i, d.Path, d))
	}
	for _, l := range s.Links {
		m.found.at(i, m.node(i, l.Path, l))
	}
	for _, u := range cfg.Systemd.Units {
		m.found.at(i, m.unit(i, u))
	}
	for _, user := range cfg.Passwd.Users {
		for _, key := range user.SSHAuthorizedKeys {
			m.keys[string(key)] = true
		}
	}
	return nil
}

func (m *merger) node(i item, p string, value any) error {
	p = path.Clean(p)
	if Owned(p) {
		return fmt.Errorf("%s belongs to the machine's own configuration: use a KubeletConfig, a ContainerRuntimeConfig or spec.imageContentSources of the HostedCluster", shorten(p))
	}
	if other, ok := m.nodes[p]; ok {
		if !reflect.DeepEqual(other.value, value) {
			return conflict(other.from, "writes "+shorten(p)+" with another content")
		}
		return nil
	}
	m.nodes[p] = node{from: i, value: value}
	return nil
}

func (m *merger) unit(i item, u ignition.Unit) error {
	if slices.Contains(OwnedUnits, u.Name) && (u.Contents != nil || u.Enabled != nil || u.Mask != nil) {
		return fmt.Errorf("unit %s belongs to the machine's own configuration: only drop-ins can be added", u.Name)
	}
	have := m.units[u.Name]
	if have == nil {
		have = &unit{Unit: ignition.Unit{Name: u.Name}, dropins: map[string]node{}}
		m.units[u.Name] = have
	}
	if u.Contents != nil {
		if have.Contents != nil && *have.Contents != *u.Contents {
			return conflict(have.contents, "has other contents for unit "+u.Name)
		}
		have.Contents, have.contents = u.Contents, i
	}
	if u.Enabled != nil || u.Mask != nil {
		if (have.Enabled != nil || have.Mask != nil) && (!reflect.DeepEqual(have.Enabled, u.Enabled) || !reflect.DeepEqual(have.Mask, u.Mask)) {
			return conflict(have.state, "enables or masks unit "+u.Name+" otherwise")
		}
		have.Enabled, have.Mask, have.state = u.Enabled, u.Mask, i
	}
	for _, d := range u.Dropins {
		if other, ok := have.dropins[d.Name]; ok && !reflect.DeepEqual(other.value, d) {
			return conflict(other.from, "has another drop-in "+d.Name+" for unit "+u.Name)
		}
		have.dropins[d.Name] = node{from: i, value: d}
	}
	return nil
}

// result is sorted, so that it does not depend on the order of anything.
func (m *merger) result() ignition.Config {
	cfg := ignition.Config{Ignition: ignition.Ignition{Version: PayloadVersion}}
	for _, p := range sortedKeys(m.nodes) {
		switch v := m.nodes[p].value.(type) {
		case ignition.File:
			cfg.Storage.Files = append(cfg.Storage.Files, v)
		case ignition.Directory:
			cfg.Storage.Directories = append(cfg.Storage.Directories, v)
		case ignition.Link:
			cfg.Storage.Links = append(cfg.Storage.Links, v)
		}
	}
	for _, name := range sortedKeys(m.units) {
		u := m.units[name]
		for _, dropin := range sortedKeys(u.dropins) {
			u.Dropins = append(u.Dropins, u.dropins[dropin].value.(ignition.Dropin))
		}
		cfg.Systemd.Units = append(cfg.Systemd.Units, u.Unit)
	}
	if len(m.keys) > 0 {
		user := ignition.PasswdUser{Name: CoreUser}
		for _, key := range sortedKeys(m.keys) {
			user.SSHAuthorizedKeys = append(user.SSHAuthorizedKeys, ignition.SSHAuthorizedKey(key))
		}
		cfg.Passwd.Users = []ignition.PasswdUser{user}
	}
	slices.SortFunc(cfg.Storage.Files, func(a, b ignition.File) int { return cmp.Compare(a.Path, b.Path) })
	return cfg
}
