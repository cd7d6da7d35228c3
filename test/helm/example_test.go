package helm

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// TestExample builds the example of docs/examples/list outside of the repository, as somebody does who imports the API module.
func TestExample(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	example := filepath.Join("..", "..", "docs", "examples", "list")
	for _, name := range []string{"main.go", "go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(example, name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(dir, name), data, 0o600)).To(Succeed())
	}
	api, err := filepath.Abs(filepath.Join("..", "..", "api"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, args := range [][]string{{"mod", "edit", "-replace", "hcp.internal/api=" + api}, {"vet", "."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -buildvcs=false")
		out, err := cmd.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
	}
}
