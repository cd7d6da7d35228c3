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

// desire changes what the node is to have.
func desire(t *testing.T, d *Daemon, hash, config string) {
	t.Helper()
	for name, data := range map[string][]byte{"hash": []byte(hash), "config": packed(t, config)} {
		if err := os.WriteFile(filepath.Join(d.Desired, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// halfConfig changes the version, and then has a file that can't be written: its folder is a file.
const halfConfig = `{"ignition":{"version":"3.2.0"},"storage":{"files":[` +
	`{"path":"/etc/kubernetes/version","mode":420,"contents":{"source":"data:,1.37.0"}},` +
	`{"path":"/etc/kubernetes/version/no","mode":420,"contents":{"source":"data:,x"}}]}}`

func TestRollback(t *testing.T) {
	version := func(g *WithT, d *Daemon) string {
		data, err := os.ReadFile(filepath.Join(d.Root, "etc/kubernetes/version"))
		g.Expect(err).NotTo(HaveOccurred())
		return string(data)
	}
	t.Run("When a configuration was written in part and the one before is desired again it should be written anew", func(t *testing.T) {
		g := NewWithT(t)
		d, node, restarts := newDaemon(t, packed(t, goodConfig))
		g.Expect(d.Start(t.Context())).To(Succeed()) // v2, and the machine has restarted
		desire(t, d, "v3", halfConfig)
		for range 4 {
			_, _ = d.step(t.Context())
			_ = d.Sleep(t.Context())
		}
		g.Expect(node.annotations).To(HaveKeyWithValue(stateAnnotation, stateDegraded))
		g.Expect(version(g, d)).To(Equal("1.37.0"), "this part was written")

		desire(t, d, "v2", goodConfig)
		g.Expect(d.Start(t.Context())).To(Succeed())
		g.Expect(version(g, d)).To(Equal("1.36.3"))
		g.Expect(*restarts).To(Equal(2))
		g.Expect(node.annotations).To(And(HaveKeyWithValue(currentConfig, "v2"), HaveKeyWithValue(stateAnnotation, stateDone)))
	})
	t.Run("When the mark can't be removed it should write nothing", func(t *testing.T) {
		g := NewWithT(t)
		d, node, restarts := newDaemon(t, packed(t, goodConfig))
		g.Expect(os.MkdirAll(filepath.Join(d.Root, markPath, "in the way"), 0o700)).To(Succeed())
		for range 4 {
			_, _ = d.step(t.Context())
			_ = d.Sleep(t.Context())
		}
		g.Expect(node.annotations).To(And(HaveKeyWithValue(stateAnnotation, stateDegraded), HaveKeyWithValue(reasonAnnotation, ContainSubstring(markPath))))
		g.Expect(version(g, d)).To(Equal("1.35.4"))
		g.Expect(*restarts).To(BeZero())
	})
}

// TestBase is about files that the machine brings.
func TestBase(t *testing.T) {
	const base = "127.0.0.1 localhost\n"
	hosts := func(t *testing.T, d *Daemon) string {
		path := filepath.Join(d.Root, "etc/hosts")
		g := NewWithT(t)
		if _, err := os.Stat(path); err != nil {
			g.Expect(os.WriteFile(path, []byte(base), 0o644)).To(Succeed())
		}
		data, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		return string(data)
	}
	t.Run("When a file has neither contents nor append it should keep what is in it", func(t *testing.T) {
		g := NewWithT(t)
		d, _, _ := newDaemon(t, packed(t, `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/hosts","mode":384}]}}`))
		hosts(t, d)
		g.Expect(d.Start(t.Context())).To(Succeed())
		g.Expect(hosts(t, d)).To(Equal(base))
		info, err := os.Stat(filepath.Join(d.Root, "etc/hosts"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
	})
	t.Run("When something is appended to what the machine brought it should touch nothing and say so", func(t *testing.T) {
		g := NewWithT(t)
		d, node, restarts := newDaemon(t, packed(t, `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/hosts","append":[{"source":"data:,x"}]}]}}`))
		hosts(t, d)
		for range 4 {
			_, _ = d.step(t.Context())
			_ = d.Sleep(t.Context())
		}
		g.Expect(hosts(t, d)).To(Equal(base))
		g.Expect(node.annotations).To(And(HaveKeyWithValue(stateAnnotation, stateDegraded), HaveKeyWithValue(reasonAnnotation, ContainSubstring("/etc/hosts has append and no contents"))))
		g.Expect(*restarts).To(BeZero())
	})
}
