package kubevirtcsicontroller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// group is what belongs together: volumes of these classes have snapshots of those.
type group struct {
	StorageClasses        []string `json:"storageClasses,omitempty"`
	VolumeSnapshotClasses []string `json:"volumeSnapshotClasses,omitempty"`
}

// manual is the enforcement of the classes that the user names: a list of all, and then the groups with classes of volumes by name. Groups with classes
// of snapshots alone follow.
func manual(m *hyperv1.KubevirtManualStorageDriverConfig) (string, error) {
	var allowed, names, snapshotsOnly []string
	groups := map[string]*group{}
	for _, c := range m.StorageClassMapping {
		allowed = append(allowed, quoted(c.InfraStorageClassName))
		if groups[c.Group] == nil {
			groups[c.Group] = &group{}
			names = append(names, c.Group)
		}
		groups[c.Group].StorageClasses = append(groups[c.Group].StorageClasses, c.InfraStorageClassName)
	}
	for _, c := range m.VolumeSnapshotClassMapping {
		if groups[c.Group] == nil {
			groups[c.Group] = &group{}
			snapshotsOnly = append(snapshotsOnly, c.Group)
		}
		groups[c.Group].VolumeSnapshotClasses = append(groups[c.Group].VolumeSnapshotClasses, c.InfraVolumeSnapshotClassName)
	}
	slices.Sort(allowed)
	slices.Sort(names)
	slices.Sort(snapshotsOnly)
	mapping := make([]*group, 0, len(groups))
	for _, name := range append(names, snapshotsOnly...) {
		mapping = append(mapping, groups[name])
	}
	raw, err := yaml.Marshal(mapping)
	if err != nil {
		return "", fmt.Errorf("writing spec.platform.kubevirt.storageDriver.manual: %w", err)
	}
	return "allowAll: false\nallowList: [" + strings.Join(allowed, ", ") + "]\nstorageSnapshotMapping: \n" + string(raw), nil
}

// quoted is the name of a class as it may stand in a list of YAML. Names that Kubernetes has need no quotes.
func quoted(name string) string {
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	raw, _ := json.Marshal(name)
	return string(raw)
}
