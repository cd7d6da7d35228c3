package version

import (
	"bytes"
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/version"
)

func TestVersion(t *testing.T) {
	g := NewWithT(t)
	run := func(args ...string) (string, string) {
		cmd := Command()
		var out, errs bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		cmd.SetArgs(args)
		g.Expect(cmd.ExecuteContext(t.Context())).To(Succeed())
		return out.String(), errs.String()
	}
	out, _ := run("--client-only", "-o", "json")
	var report Report
	g.Expect(json.Unmarshal([]byte(out), &report)).To(Succeed())
	g.Expect(report.Client.Commit).NotTo(BeEmpty())
	g.Expect(report.Client.Version).NotTo(BeEmpty())
	g.Expect(report.Server).To(BeNil())

	out, errs := run("--kubeconfig", "/nonexistent")
	g.Expect(out).To(HavePrefix("Client Version:"), "the client's version needs no cluster")
	g.Expect(errs).To(ContainSubstring("/nonexistent"))
}

func TestParse(t *testing.T) {
	g := NewWithT(t)
	data := map[string]string{"supported-versions": `{"versions":["1.36","1.35"]}`, "server-version": "abc"}
	server, err := parse(data)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*server).To(Equal(Server{Commit: "abc", SupportedVersions: []string{"1.36", "1.35"}}), "of an operator that tells no version")
	data[version.ServerKey] = "1.2.3"
	server, err = parse(data)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.Version).To(Equal("1.2.3"))
	_, err = parse(nil)
	g.Expect(err).To(MatchError(ContainSubstring("supported-versions")))
}

func TestPrint(t *testing.T) {
	report := Report{Client: version.Build{Version: "1.2.0", Commit: "0123456789ab", Go: "go1.26.0", Platform: "linux/amd64"}}
	report.judge(&Server{Version: "1.1.4", Commit: "ba9876543210", SupportedVersions: []string{"5.1", "4.22", "1.36", "1.35"}})
	report.ControlPlaneOperators = judgeControlPlanes("1.1.4", map[string]int{"1.1.0": 1, "": 2})
	for name, tc := range map[string]struct {
		format output.Format
		want   string
	}{
		"When no format is asked for it should name kinds of releases": {output.Text, `Client Version: v1.2.0, commit 0123456789ab (go1.26.0, linux/amd64)
Server Version: v1.1.4, commit ba9876543210
Server Supports Kubernetes: 1.36, 1.35
Server Supports OpenShift: 5.1, 4.22
Control Plane Operator: version unknown (2 hosted clusters): Undetermined: its image doesn't say its version
Control Plane Operator: v1.1.0 (1 hosted cluster): Supported: it has the operator's minor version
Version Skew: Supported: client and server are one minor version apart, which is supported
`},
		"When YAML is asked for it should have all of it": {output.YAML, `client:
  commit: 0123456789ab
  go: go1.26.0
  platform: linux/amd64
  version: 1.2.0
controlPlaneOperators:
- hostedClusters: 2
  skew:
    message: its image doesn't say its version
    verdict: Undetermined
- hostedClusters: 1
  skew:
    message: it has the operator's minor version
    verdict: Supported
  version: 1.1.0
server:
  commit: ba9876543210
  supportedVersions:
  - "5.1"
  - "4.22"
  - "1.36"
  - "1.35"
  version: 1.1.4
skew:
  message: client and server are one minor version apart, which is supported
  verdict: Supported
`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var out bytes.Buffer
			g.Expect(report.print(&out, tc.format)).To(Succeed())
			g.Expect(out.String()).To(Equal(tc.want))
		})
	}
}
