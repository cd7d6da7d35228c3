package support

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// TestProofs looks for what the table of platforms names.
func TestProofs(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Run("When the API has a platform the table should have it, once, and in order", func(t *testing.T) {
		var names []string
		for _, p := range Proofs {
			names = append(names, p.Platform)
		}
		NewWithT(t).Expect(names).To(Equal([]string{string(hyperv1.AWSPlatform), string(hyperv1.AgentPlatform), string(hyperv1.AzurePlatform), string(hyperv1.GCPPlatform), string(hyperv1.IBMCloudPlatform),
			string(hyperv1.KubevirtPlatform), string(hyperv1.LocalPlatform), string(hyperv1.NonePlatform), string(hyperv1.OpenStackPlatform), string(hyperv1.PowerVSPlatform)}))
	})
	for _, p := range Proofs {
		t.Run("When the table names targets and tests of platform "+p.Platform+" there should be such", func(t *testing.T) {
			g := NewWithT(t)
			for _, text := range []string{p.Ran, p.Rendered, p.Unproved} {
				g.Expect(text).NotTo(Or(BeEmpty(), HaveSuffix(".")))
			}
			all := p.Ran + " " + p.Rendered
			for _, m := range regexp.MustCompile(`make ([a-z0-9-]+)`).FindAllStringSubmatch(all, -1) {
				g.Expect(string(makefile)).To(ContainSubstring("\n" + m[1] + ":"))
			}
			for _, m := range regexp.MustCompile(`test ([a-z0-9/]+)\.(Test\w+)`).FindAllStringSubmatch(all, -1) {
				files, err := filepath.Glob(filepath.Join("..", "..", m[1], "*_test.go"))
				g.Expect(err).NotTo(HaveOccurred())
				code := ""
				for _, file := range files {
					raw, err := os.ReadFile(file)
					g.Expect(err).NotTo(HaveOccurred())
					code += string(raw)
				}
				g.Expect(code).To(ContainSubstring("func "+m[2]+"("), m[0])
			}
		})
	}
}
