package version

import (
	"bytes"
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
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
	g.Expect(report.Server).To(BeNil())

	out, errs := run("--kubeconfig", "/nonexistent")
	g.Expect(out).To(HavePrefix("Client Version:"), "the client's version needs no cluster")
	g.Expect(errs).To(ContainSubstring("/nonexistent"))
}

func TestParse(t *testing.T) {
	g := NewWithT(t)
	server, err := parse(map[string]string{"supported-versions": `{"versions":["1.36","1.35"]}`, "server-version": "abc"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*server).To(Equal(Server{Commit: "abc", SupportedVersions: []string{"1.36", "1.35"}}))
	_, err = parse(nil)
	g.Expect(err).To(MatchError(ContainSubstring("supported-versions")))
}
