package nodeconfig_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"hcp.internal/platform/internal/contract/nodeconfig"
)

func doc(name string) string {
	return fmt.Sprintf("kind: MachineConfig\napiVersion: machineconfiguration.openshift.io/v1\nmetadata:\n  name: %s\n", name)
}

func TestCanonical(t *testing.T) {
	for name, tc := range map[string]struct{ a, b []nodeconfig.Source }{
		"When documents are in another order it should give the same text": {
			a: []nodeconfig.Source{{Name: "x", Data: doc("one") + "---\n" + doc("two")}},
			b: []nodeconfig.Source{{Name: "x", Data: doc("two") + "---\n" + doc("one")}},
		},
		"When documents are in other ConfigMaps it should give the same text": {
			a: []nodeconfig.Source{{Name: "x", Data: doc("one") + "---\n" + doc("two")}},
			b: []nodeconfig.Source{{Name: "x", Data: doc("two")}, {Name: "y", Data: doc("one")}},
		},
		"When keys are in another order, or comments and separators are added, it should give the same text": {
			a: []nodeconfig.Source{{Name: "x", Data: doc("one")}},
			b: []nodeconfig.Source{{Name: "x", Data: "---\n# a comment\n---\nmetadata: {name: one}\napiVersion: machineconfiguration.openshift.io/v1 # why\nkind: MachineConfig\n---\n"}},
		},
		"When a MachineConfig says another role it should be for workers all the same": {
			a: []nodeconfig.Source{{Name: "x", Data: doc("one")}},
			b: []nodeconfig.Source{{Name: "x", Data: doc("one") + "  labels: {machineconfiguration.openshift.io/role: master}\n"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a, err := nodeconfig.Canonical(tc.a)
			g.Expect(err).NotTo(HaveOccurred())
			b, err := nodeconfig.Canonical(tc.b)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(b).To(Equal(a))
			g.Expect(a).To(ContainSubstring("machineconfiguration.openshift.io/role: worker"))
		})
	}
	t.Run("When a text was canonical already it should stay as it is", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			names := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,8}`), 0, 6).Draw(t, "names")
			docs := make([]string, len(names))
			for i, n := range names {
				docs[i] = doc(n)
			}
			once, err := nodeconfig.Canonical([]nodeconfig.Source{{Data: strings.Join(docs, "---\n")}})
			if err != nil {
				t.Fatal(err)
			}
			twice, err := nodeconfig.Canonical([]nodeconfig.Source{{Data: once}})
			if err != nil || once != twice {
				t.Fatalf("%v: %q became %q", err, once, twice)
			}
		})
	})
}

func TestEncode(t *testing.T) {
	t.Run("When a configuration is encoded it should come back", func(t *testing.T) {
		g := NewWithT(t)
		encoded, err := nodeconfig.Encode("some text")
		g.Expect(err).NotTo(HaveOccurred())
		r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(encoded)))
		g.Expect(err).NotTo(HaveOccurred())
		text, err := io.ReadAll(io.LimitReader(r, 100))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).To(Equal("some text"))
	})
	t.Run("When it does not fit into a Secret it should say so", func(t *testing.T) {
		g := NewWithT(t)
		noise := make([]byte, 400<<10)
		_, err := rand.Read(noise)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = nodeconfig.Encode(hex.EncodeToString(noise))
		g.Expect(err).To(MatchError(ContainSubstring("take something out of spec.config")))
	})
}
