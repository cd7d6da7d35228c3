package checks

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestFeatureGate(t *testing.T) {
	const head = "apiVersion: config.openshift.io/v1\nkind: FeatureGate\nmetadata: {name: cluster}\n"
	for what, tt := range map[string]struct{ spec, want, err string }{
		"of the default":       {"spec: {}\n", "disabled:\n    - name: MachineConfigNodes", ""},
		"of a preview":         {"spec: {featureSet: TechPreviewNoUpgrade}\n", "enabled:\n    - name: ExternalOIDC\n    - name: MachineConfigNodes", ""},
		"custom":               {"spec: {featureSet: CustomNoUpgrade, customNoUpgrade: {enabled: [A], disabled: [ExternalOIDC]}}\n", "enabled:\n    - name: A", ""},
		"on and off":           {"spec: {featureSet: CustomNoUpgrade, customNoUpgrade: {enabled: [A], disabled: [A]}}\n", "", "gate A is enabled and disabled"},
		"of a set that is new": {"spec: {featureSet: Sometimes}\n", "", `spec.featureSet "Sometimes" doesn't exist`},
		"with a field more":    {"spec: {feature: x}\n", "", "feature"},
	} {
		t.Run("When a FeatureGate is "+what+" it should be rendered, or refused with the reason", func(t *testing.T) {
			g := NewWithT(t)
			got, err := FeatureGate([]byte(head+tt.spec), "4.22.0")
			if tt.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(got)).To(And(ContainSubstring(tt.want), ContainSubstring("version: 4.22.0")))
		})
	}
}
