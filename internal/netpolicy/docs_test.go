package netpolicy

import (
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// The matrix in the documentation is that of the code. UPDATE=true writes it.
func TestDocumentation(t *testing.T) {
	const file, begin, end = "../../docs/isolation.md", "<!-- matrix: written by go test ./internal/netpolicy with UPDATE=true -->\n", "<!-- end of matrix -->"
	g := NewWithT(t)
	var table strings.Builder
	table.WriteString("| from | to | ports | for |\n|---|---|---|---|\n")
	for _, f := range (Input{Cloud: true, AutoNode: true}).flows() {
		ports := "all TCP"
		switch {
		case f.To == managementAPI:
			ports = "those of its API servers, 443, 6443"
		case len(f.Ports) > 0:
			var list []string
			for _, port := range f.Ports {
				if port == apiPort {
					list = append(list, "6443, `spec.networking.apiServer.port`")
					continue
				}
				list = append(list, fmt.Sprint(port))
			}
			ports = strings.Join(list, ", ")
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", f.From, f.To, ports, f.Why)
	}
	data, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	head, rest, ok := strings.Cut(string(data), begin)
	g.Expect(ok).To(BeTrue(), "the start of the matrix in %s", file)
	_, tail, ok := strings.Cut(rest, end)
	g.Expect(ok).To(BeTrue(), "the end of the matrix in %s", file)
	want := head + begin + table.String() + end + tail
	if os.Getenv("UPDATE") == "true" {
		g.Expect(os.WriteFile(file, []byte(want), 0o644)).To(Succeed())
		return
	}
	g.Expect(string(data)).To(Equal(want), "run UPDATE=true go test ./internal/netpolicy")
}
