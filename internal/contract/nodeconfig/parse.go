package nodeconfig

import (
	"maps"
	"slices"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
)

// Target is what a configuration is for.
type Target struct {
	// Kubernetes is true for a Kubernetes release, whose payloads are made here. For OpenShift payloads most of the meaning is
	// left to the payload's own tools.
	Kubernetes bool
	// InPlace is true for machines that are changed in place. Their daemon writes whole files: it doesn't know what a machine brought.
	InPlace bool
}

// Config is what all sources come to.
type Config struct {
	// Ignition is the merger of all MachineConfigs. Its lists are sorted by path and name. Filled for Kubernetes releases only.
	Ignition ignition.Config
	// Kubelet is nil when there is no KubeletConfig, as Runtime without a ContainerRuntimeConfig.
	Kubelet *Kubelet
	Runtime *Runtime
	// Mirrors are sorted by source; each source appears once.
	Mirrors []Mirror
}

// Validate says why the sources cannot be used, naming the items. The message holds no more than ten problems, and of what the
// user wrote only names and short pieces: never the content of a file.
func Validate(target Target, sources ...Source) error {
	_, err := Parse(target, sources...)
	return err
}

// Parse reads the sources. The result does not depend on their order, nor on that of the documents in them.
func Parse(target Target, sources ...Source) (*Config, error) {
	var found problems
	items := split(sources, &found)
	slices.SortStableFunc(items, compareItems)

	c := &Config{}
	m := newMerger(&found)
	mirrors := mirrorSet{}
	seen := map[string]item{}
	for _, i := range items {
		key := i.kind + "/" + i.name
		if other, ok := seen[key]; ok {
			if string(other.raw) != string(i.raw) {
				found.at(i, conflict(other, "has the same name"))
			}
			continue
		}
		seen[key] = i
		switch i.kind {
		case KindMachineConfig:
			found.at(i, m.machineConfig(i, target))
		case KindKubeletConfig:
			found.at(i, c.kubelet(i, target))
		case KindContainerRuntimeConfig:
			found.at(i, c.runtime(i, target))
		case KindImageDigestMirrorSet:
			found.at(i, mirrors.digestMirrorSet(i, target))
		case KindImageContentSourcePolicy:
			found.at(i, mirrors.contentSourcePolicy(i, target))
		case KindClusterImagePolicy:
			found.at(i, imagePolicy(target))
		}
	}
	c.Ignition = m.result()
	c.Mirrors = mirrors.sorted()
	if err := found.err(); err != nil {
		return nil, err
	}
	return c, nil
}

func compareItems(a, b item) int {
	switch {
	case a.kind != b.kind:
		return compare(a.kind, b.kind)
	case a.name != b.name:
		return compare(a.name, b.name)
	case a.source != b.source:
		return compare(a.source, b.source)
	}
	return compare(string(a.raw), string(b.raw))
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func contains(list []string, s string) bool { return slices.Contains(list, s) }
