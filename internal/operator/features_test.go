package operator

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestFeatures(t *testing.T) {
	for name, tc := range map[string]struct {
		set    string
		single map[string]string
		on     []Feature
		err    string
	}{
		"When nothing is said all should be off":                {},
		"When it is a preview all should be on":                 {set: "TechPreviewNoUpgrade", on: Gates},
		"When single gates are named they should win":           {single: map[string]string{"HCPEtcdBackup": "true"}, on: []Feature{HCPEtcdBackup}},
		"When it is a preview without one it should be off":     {set: "TechPreviewNoUpgrade", single: map[string]string{"OSStreams": "false"}, on: Gates[:len(Gates)-1]},
		"When the set is unknown it should list those that are": {set: "TechPreview", err: `feature set "TechPreview" is unknown: leave $HYPERSHIFT_FEATURESET empty, or set it to one of TechPreviewNoUpgrade`},
		"When a gate is unknown it should list those that are":  {single: map[string]string{"EtcdBackup": "true"}, err: "EtcdBackup is unknown: known are AROHCPManagedIdentities"},
		"When a value is none it should say so":                 {single: map[string]string{"HCPEtcdBackup": "on"}, err: `HCPEtcdBackup="on": write true or false`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f, err := NewFeatures(tc.set, tc.single)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			var on []Feature
			for _, gate := range Gates {
				if f.Enabled(gate) {
					on = append(on, gate)
				}
			}
			g.Expect(on).To(Equal(tc.on))
		})
	}
}

func TestInert(t *testing.T) {
	t.Run("When gates change nothing it should name them, and no other", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(Inert(map[string]string{"HCPEtcdBackup": "true"})).To(BeEmpty())
		g.Expect(Inert(map[string]string{"OpenStack": "true", "HCPEtcdBackup": "true", "EtcdSharding": "false"})).To(Equal([]string{
			"feature gate EtcdSharding changes nothing, on or off: no gate of this version is about shards of etcd",
			"feature gate OpenStack changes nothing, on or off: no gate of this version is about platform OpenStack",
		}))
	})
	t.Run("When a gate is known it should be heeded, or said to change nothing", func(t *testing.T) {
		g := NewWithT(t)
		for _, gate := range Gates {
			_, silent := inert[gate]
			g.Expect(silent).To(Equal(gate != HCPEtcdBackup), "%s", gate)
		}
	})
}
