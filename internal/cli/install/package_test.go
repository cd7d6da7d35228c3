package install

import (
	"bytes"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/cli/kubectlpackage"
)

func TestPackage(t *testing.T) {
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := Command()
		cmd.SetArgs(append([]string{"package"}, args...))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	t.Run("When the operator's package is written kubectl package should find no mistake in it", func(t *testing.T) {
		g := NewWithT(t)
		dir := filepath.Join(t.TempDir(), "package")
		out, err := run("--hypershift-image", "registry.example.com/operator"+digest, "--output-dir", dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(Equal("wrote " + dir + "\n"))
		var said bytes.Buffer
		validate := kubectlpackage.Command(kubectlpackage.Options{})
		validate.SetArgs([]string{"validate", dir})
		validate.SetOut(&said)
		validate.SetErr(&said)
		g.Expect(validate.ExecuteContext(t.Context())).To(Succeed())
		g.Expect(said.String()).To(Equal("Package validated successfully!"))
	})
	t.Run("When the image has no digest or no folder is named it should say so", func(t *testing.T) {
		g := NewWithT(t)
		_, err := run("--hypershift-image", "registry.example.com/operator:1", "--output-dir", t.TempDir())
		g.Expect(err).To(MatchError(HavePrefix("--hypershift-image: image \"registry.example.com/operator:1\" has to have a digest")))
		_, err = run("--hypershift-image", "registry.example.com/operator"+digest)
		g.Expect(err).To(MatchError("--output-dir is required"))
	})
}
