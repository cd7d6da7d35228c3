package shell

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestParse(t *testing.T) {
	lookup := func(name string) (string, bool) {
		v, ok := map[string]string{"HOSTNAME": "etcd-0", "NAMESPACE": "ns", "SPACED": "a b"}[name]
		return v, ok
	}
	for name, tc := range map[string]struct {
		command string
		want    []string
		says    string
	}{
		"When it starts a program it should fill in variables": {command: "exec control-plane-operator resolve-dns ${HOSTNAME}.etcd.$NAMESPACE.svc", want: []string{"control-plane-operator", "resolve-dns", "etcd-0.etcd.ns.svc"}},
		"When a value has spaces it should stay one argument":  {command: "exec x $SPACED", want: []string{"x", "a b"}},
		"When a variable is missing it should name it":         {command: "exec x ${GONE}", says: "GONE"},
		"When it is another command it should refuse it":       {command: "rm -rf /", says: "no shell"},
		"When it is more than one command it should refuse it": {command: "exec x; rm y", says: "no shell"},
		"When there is no program it should refuse it":         {command: "exec", says: "no shell"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := parse(tc.command, lookup)
			if tc.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestTest(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "token")
	ask := func(args ...string) error {
		cmd := TestCommand()
		cmd.SetArgs(args)
		return cmd.Execute()
	}
	g.Expect(ask("-f", file)).To(HaveOccurred(), "When the file is missing it should fail")
	g.Expect(os.WriteFile(file, []byte("t"), 0o600)).To(Succeed())
	g.Expect(ask("-f", file)).To(Succeed())
	g.Expect(ask("-f", filepath.Dir(file))).To(HaveOccurred(), "When it is a folder it should fail")
	g.Expect(ask("-d", file)).To(HaveOccurred(), "When it is asked for something else it should fail")
}
