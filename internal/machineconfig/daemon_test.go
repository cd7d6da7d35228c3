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

func TestFolders(t *testing.T) {
	const config = `{"ignition":{"version":"3.2.0"},"storage":{"directories":[{"path":"/var/lib/data","overwrite":true,"mode":448}]}}`
	mode := func(g *WithT, d *Daemon) os.FileMode {
		info, err := os.Lstat(filepath.Join(d.Root, "var/lib/data"))
		g.Expect(err).NotTo(HaveOccurred())
		return info.Mode()
	}
	t.Run("When a folder with overwrite is there it should keep what is in it and set its mode", func(t *testing.T) {
		g := NewWithT(t)
		d, _, _ := newDaemon(t, packed(t, config))
		theirs := filepath.Join(d.Root, "var/lib/data/theirs")
		g.Expect(os.MkdirAll(filepath.Dir(theirs), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(theirs, []byte("since the first boot"), 0o600)).To(Succeed())
		g.Expect(d.Start(t.Context())).To(Succeed())
		g.Expect(os.ReadFile(theirs)).To(BeEquivalentTo("since the first boot"))
		g.Expect(mode(g, d)).To(Equal(os.ModeDir | 0o700))
	})
	t.Run("When a file is where a folder with overwrite is to be it should be replaced", func(t *testing.T) {
		g := NewWithT(t)
		d, _, _ := newDaemon(t, packed(t, config))
		g.Expect(os.MkdirAll(filepath.Join(d.Root, "var/lib"), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(d.Root, "var/lib/data"), nil, 0o600)).To(Succeed())
		g.Expect(d.Start(t.Context())).To(Succeed())
		g.Expect(mode(g, d)).To(Equal(os.ModeDir | 0o700))
	})
}

// TestRun is about machines that restart, in which little changes.
func TestRun(t *testing.T) {
	const bootA, bootB = "0b3c1f4e-0000-4000-8000-00000000000a", "0b3c1f4e-0000-4000-8000-00000000000b"
	// in is a machine's /proc.
	in := func(t *testing.T, boot, start string) string {
		proc := t.TempDir()
		for name, content := range map[string]string{"sys/kernel/random/boot_id": boot + "\n", "1/stat": "1 (a) b) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 " + start + " 1 2\n"} {
			NewWithT(t).Expect(os.MkdirAll(filepath.Dir(filepath.Join(proc, name)), 0o755)).To(Succeed())
			NewWithT(t).Expect(os.WriteFile(filepath.Join(proc, name), []byte(content), 0o600)).To(Succeed())
		}
		return proc
	}
	for name, boots := range map[string][2][2]string{
		"When process 1 starts as late as at the boot before it should know the machine by its boot ID": {{bootA, "17"}, {bootB, "17"}},
		"When the machine is a pod, which restarts without the kernel, it should know it by process 1":  {{bootA, "1700"}, {bootA, "42000"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d, node, restarts := newDaemon(t, packed(t, goodConfig))
			before, after := in(t, boots[0][0], boots[0][1]), in(t, boots[1][0], boots[1][1])
			d.Run = func() (string, error) {
				if *restarts == 0 {
					return runOfMachine(before)
				}
				return runOfMachine(after)
			}
			for range 10 {
				_, err := d.step(t.Context())
				g.Expect(err).NotTo(HaveOccurred())
				_ = d.Sleep(t.Context())
			}
			g.Expect(*restarts).To(Equal(1))
			g.Expect(node.annotations).To(And(HaveKeyWithValue(currentConfig, "v2"), HaveKeyWithValue(stateAnnotation, stateDone)))
		})
	}
	// Where it can't be told from the mark, one restart more is better than a configuration that nothing runs.
	for name, tc := range map[string]struct {
		mark     string
		restarts int
	}{
		"When an older daemon has marked another start of process 1 it should count as a restart":             {"v2 16", 0},
		"When an older daemon has marked the same start of process 1 it should restart the machine once more": {"v2 17", 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d, node, restarts := newDaemon(t, packed(t, goodConfig))
			path := filepath.Join(d.Root, markPath)
			g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
			g.Expect(os.WriteFile(path, []byte(tc.mark+"\n"), 0o600)).To(Succeed())
			first, second := in(t, bootA, "17"), in(t, bootB, "17")
			d.Run = func() (string, error) {
				if *restarts == 0 {
					return runOfMachine(first)
				}
				return runOfMachine(second)
			}
			for range 10 {
				_, err := d.step(t.Context())
				g.Expect(err).NotTo(HaveOccurred())
				_ = d.Sleep(t.Context())
			}
			g.Expect(*restarts).To(Equal(tc.restarts))
			g.Expect(node.annotations).To(And(HaveKeyWithValue(currentConfig, "v2"), HaveKeyWithValue(stateAnnotation, stateDone)))
		})
	}
	t.Run("When /proc can't be read it should say so", func(t *testing.T) {
		_, err := runOfMachine(t.TempDir())
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("reading when the machine began")))
	})
}
