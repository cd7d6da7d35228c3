package machineconfig

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
)

// fakeNode is a node with a drainer beside it.
type fakeNode struct {
	annotations map[string]string
	ours        map[string]string
	states      []string
}

func (n *fakeNode) Annotations(context.Context) (map[string]string, error) {
	return maps.Clone(n.annotations), nil
}

func (n *fakeNode) Annotate(_ context.Context, all map[string]string) error {
	for k := range n.ours {
		delete(n.annotations, k)
	}
	n.ours = maps.Clone(all)
	maps.Copy(n.annotations, all)
	n.states = append(n.states, all[stateAnnotation]+" "+all[desiredDrain])
	return nil
}

func packed(t *testing.T, config string) []byte {
	var out bytes.Buffer
	encoder := base64.NewEncoder(base64.StdEncoding, &out)
	zip := gzip.NewWriter(encoder)
	if _, err := zip.Write([]byte(config)); err != nil {
		t.Fatal(err)
	}
	_, _ = zip.Close(), encoder.Close()
	return out.Bytes()
}

const goodConfig = `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/kubernetes/version","mode":420,"contents":{"source":"data:,1.36.3"}}]}}`

func newDaemon(t *testing.T, config []byte) (*Daemon, *fakeNode, *int) {
	t.Helper()
	node := &fakeNode{annotations: map[string]string{"other": "x"}}
	restarts := new(int)
	d := &Daemon{
		Node: node, Root: t.TempDir(), Desired: t.TempDir(), Say: t.Logf,
		Run:     func() (string, error) { return strconv.Itoa(*restarts), nil },
		Restart: func() error { *restarts++; return nil },
		Sleep: func(context.Context) error { // meanwhile the drainer does its work
			node.annotations[lastAppliedDrain] = node.annotations[desiredDrain]
			return nil
		},
	}
	for name, data := range map[string][]byte{"hash": []byte("v2"), "config": config} {
		if err := os.WriteFile(filepath.Join(d.Desired, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(d.Root, "etc/kubernetes"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Root, "etc/kubernetes/version"), []byte("1.35.4"), 0o600); err != nil {
		t.Fatal(err)
	}
	return d, node, restarts
}

func TestDaemon(t *testing.T) {
	t.Run("When a node is behind it should drain, write, restart once and open it again", func(t *testing.T) {
		g := NewWithT(t)
		d, node, restarts := newDaemon(t, packed(t, goodConfig))
		g.Expect(d.Start(t.Context())).To(Succeed())
		data, err := os.ReadFile(filepath.Join(d.Root, "etc/kubernetes/version"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(data)).To(Equal("1.36.3"))
		g.Expect(*restarts).To(Equal(1))
		g.Expect(node.states).To(Equal([]string{"Working drain-v2", "Working uncordon-v2", "Done uncordon-v2"}))
		g.Expect(node.annotations).To(And(HaveKeyWithValue(currentConfig, "v2"), HaveKeyWithValue("other", "x")))
		g.Expect(d.Start(t.Context())).To(Succeed()) // nothing to do
		g.Expect(*restarts).To(Equal(1))
	})
	t.Run("When it isn't drained yet it should touch nothing", func(t *testing.T) {
		g := NewWithT(t)
		d, _, restarts := newDaemon(t, packed(t, goodConfig))
		for range 3 {
			_, err := d.step(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
		}
		data, _ := os.ReadFile(filepath.Join(d.Root, "etc/kubernetes/version"))
		g.Expect(string(data)).To(Equal("1.35.4"))
		g.Expect(*restarts).To(BeZero())
	})
	for name, config := range map[string][]byte{
		"When the configuration is garbage it should be degraded":   []byte("garbage"),
		"When it is no Ignition config it should be degraded":       packed(t, `{"ignition":{"version":"9.0.0"}}`),
		"When it has a file outside the root it should be degraded": packed(t, `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"../../x"}]}}`),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d, node, restarts := newDaemon(t, config)
			for range 5 {
				_, _ = d.step(t.Context())
				_ = d.Sleep(t.Context())
			}
			g.Expect(node.annotations[stateAnnotation]).To(Equal(stateDegraded))
			g.Expect(node.annotations[reasonAnnotation]).NotTo(BeEmpty())
			g.Expect(len(node.states)).To(BeNumerically("<=", 2), "the same is said once")
			g.Expect(*restarts).To(BeZero())
		})
	}
}
