package auditlogs

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
)

func TestSettings(t *testing.T) {
	t.Run("When settings are handed over they should arrive as they were", func(t *testing.T) {
		g := NewWithT(t)
		s := Settings{Size: "5Gi", StorageClass: "fast", MaxSize: 200, MaxBackup: 10}
		got, err := Parse(map[string]string{SettingsAnnotation: s.Encode()})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(&s))
		template := got.Source("kube-apiserver").Ephemeral.VolumeClaimTemplate
		g.Expect(template.Spec.StorageClassName).To(Equal(ptr.To("fast")))
		g.Expect(template.Spec.Resources.Requests.Storage().String()).To(Equal("5Gi"))
		g.Expect(template.Labels).To(HaveKeyWithValue(ClaimLabel, "kube-apiserver"))
	})
	t.Run("When there is no annotation there should be no settings", func(t *testing.T) {
		g := NewWithT(t)
		s, err := Parse(nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s).To(BeNil())
	})
	for name, text := range map[string]string{"no JSON": "yes", "no size": `{"maxSize":1,"maxBackup":1}`, "a size below nothing": `{"size":"-1","maxSize":1,"maxBackup":1}`,
		"no file": `{"size":"1Gi","maxSize":1,"maxBackup":0}`, "too long": strings.Repeat(" ", maxSettings) + "{}"} {
		t.Run("When it is "+name+" it should be refused and named", func(t *testing.T) {
			_, err := Parse(map[string]string{SettingsAnnotation: text})
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(SettingsAnnotation)))
		})
	}
}
