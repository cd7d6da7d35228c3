package kubevirtcsicontroller

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestEnforcement(t *testing.T) {
	volume := func(group, name string) hyperv1.KubevirtStorageClassMapping {
		return hyperv1.KubevirtStorageClassMapping{Group: group, InfraStorageClassName: name}
	}
	snapshot := func(group, name string) hyperv1.KubevirtVolumeSnapshotClassMapping {
		return hyperv1.KubevirtVolumeSnapshotClassMapping{Group: group, InfraVolumeSnapshotClassName: name}
	}
	for name, tc := range map[string]struct {
		driver hyperv1.KubevirtStorageDriverSpec
		want   string
	}{
		"When nothing is said it should allow the default class": {want: "allowDefault: true\nallowAll: false\n"},
		"When there is no driver it should allow nothing": {
			driver: hyperv1.KubevirtStorageDriverSpec{Type: hyperv1.NoneKubevirtStorageDriverConfigType}, want: "allowDefault: false\nallowAll: false\n"},
		"When classes are named it should allow these, by their groups": {
			driver: hyperv1.KubevirtStorageDriverSpec{Type: hyperv1.ManualKubevirtStorageDriverConfigType, Manual: &hyperv1.KubevirtManualStorageDriverConfig{
				StorageClassMapping:        []hyperv1.KubevirtStorageClassMapping{volume("b", "slow"), volume("a", "fast"), volume("b", "x: y")},
				VolumeSnapshotClassMapping: []hyperv1.KubevirtVolumeSnapshotClassMapping{snapshot("0", "lonely"), snapshot("b", "snap")},
			}},
			want: "allowAll: false\nallowList: [\"x: y\", fast, slow]\nstorageSnapshotMapping: \n- storageClasses:\n  - fast\n- storageClasses:\n  - slow\n  - 'x: y'\n" +
				"  volumeSnapshotClasses:\n  - snap\n- volumeSnapshotClasses:\n  - lonely\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := enforcement(tc.driver)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
			g.Expect(yaml.Unmarshal([]byte(got), &map[string]any{})).To(Succeed())
		})
	}
}
