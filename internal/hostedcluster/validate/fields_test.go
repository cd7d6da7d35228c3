package validate

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/hostedclustertest"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/support/supporttest"
)

// index is the place of an element in a list, which a message has and the table has not.
var index = regexp.MustCompile(`\[[0-9]+\]`)

// TestAllFieldsHeeded sets every field for itself and reads what users are told.
func TestAllFieldsHeeded(t *testing.T) {
	table := support.Of("HostedCluster")
	for _, leaf := range supporttest.Leaves(t, table.Kind) {
		e, _ := table.Lookup(leaf.Path, "")
		if e.Verdict == support.Heeded || e.Quiet || strings.HasPrefix(leaf.Path, "spec.platform") ||
			leaf.Path == "spec.secretEncryption.kms.ibmcloud.auth.managed" { // it has no fields, so it can't be told from one that is not set
			continue
		}
		t.Run("When "+leaf.Path+" is set it should be told, and refused where the table says so", func(t *testing.T) {
			g := NewWithT(t)
			for _, value := range supporttest.Candidates(leaf) {
				if value == any("") || value == any(false) || fmt.Sprint(value) == e.Default || fmt.Sprint(value) == "map[]" {
					continue
				}
				if special, _ := table.Lookup(leaf.Path, fmt.Sprint(value)); special.Verdict != e.Verdict {
					continue
				}
				spec := hostedclustertest.Spec(t)
				supporttest.Set(spec, leaf.Path, value)
				hc, ok := hostedclustertest.Decode(spec)
				if !ok {
					continue
				}
				c := AllFieldsHeeded(hc, false)
				g.Expect(c.Status).To(Equal(metav1.ConditionFalse), "%v", value)
				g.Expect(c.Reason).To(Equal(hyperv1.FieldsNotHeededReason))
				g.Expect(index.ReplaceAllString(c.Message, "[]")).To(ContainSubstring(e.Path + ": " + e.Text))
				refused := strings.Join(fieldsAreNotRefused(&Input{HC: hc}), "; ")
				g.Expect(strings.Contains(refused, e.Text)).To(Equal(e.Verdict == support.Refused), refused)
				g.Expect(fieldsAreNotRefused(&Input{HC: hc, Started: true})).To(BeEmpty(), "a cluster that runs goes on")
				return
			}
			t.Errorf("no value of %s could be set", leaf.Path)
		})
	}
	t.Run("When everything is heeded it should say so", func(t *testing.T) {
		g := NewWithT(t)
		hc, ok := hostedclustertest.Decode(hostedclustertest.Spec(t))
		g.Expect(ok).To(BeTrue())
		g.Expect(AllFieldsHeeded(hc, false).Status).To(Equal(metav1.ConditionTrue))
	})
	t.Run("When an annotation means nothing it should be named", func(t *testing.T) {
		g := NewWithT(t)
		hc := hostedclustertest.Example("clusters", hostedclustertest.Image)
		hc.Annotations = map[string]string{hyperv1.PortierisImageAnnotation: "x", hyperv1.RestartDateAnnotation: "x"}
		c := AllFieldsHeeded(hc, false)
		g.Expect(c.Message).To(ContainSubstring("metadata.annotations[" + hyperv1.PortierisImageAnnotation + "]"))
		g.Expect(c.Message).NotTo(ContainSubstring(hyperv1.RestartDateAnnotation))
	})
}
