package pullsecret

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const (
	ours = `{"auths":{"quay.io":{"auth":"dTpw"}}}`
	both = `{"auths":{"quay.io":{"auth":"dTpw"},"registry.example.com":{"auth":"eDp5"}}}`
)

// node is a folder of a node with the files that a syncer looks at.
type node struct {
	syncer
	restarts int
	pauses   []time.Duration
	output   bytes.Buffer
}

func newNode(t *testing.T, restart func(n *node) error) *node {
	t.Helper()
	dir := t.TempDir()
	n := &node{}
	n.syncer = syncer{
		original: filepath.Join(dir, "original"), global: filepath.Join(dir, "global"), kubelet: filepath.Join(dir, "config.json"), log: &n.output,
		restart: func(context.Context) error {
			n.restarts++
			if restart == nil {
				return nil
			}
			return restart(n)
		},
		pause: func(ctx context.Context, d time.Duration) error {
			n.pauses = append(n.pauses, d)
			return ctx.Err()
		},
	}
	n.put(t, n.original, ours)
	return n
}

func (n *node) put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (n *node) file(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(n.kubelet)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestSync(t *testing.T) {
	t.Run("When the user adds credentials the kubelet should get both and start anew once, and go back when they go", func(t *testing.T) {
		g := NewWithT(t)
		n := newNode(t, nil)
		n.put(t, n.kubelet, ours+"\n")
		g.Expect(n.sync(t.Context())).To(Succeed())
		g.Expect(n.restarts).To(BeZero(), "nothing differs but a line's end")
		n.put(t, n.global, both)
		for range 3 {
			g.Expect(n.sync(t.Context())).To(Succeed())
		}
		g.Expect(n.file(t)).To(Equal(both))
		g.Expect(n.restarts).To(Equal(1))
		info, err := os.Stat(n.kubelet)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		g.Expect(os.Remove(n.global)).To(Succeed())
		g.Expect(n.sync(t.Context())).To(Succeed())
		g.Expect(n.file(t)).To(Equal(ours))
		g.Expect(n.restarts).To(Equal(2))
		g.Expect(n.output.String()).NotTo(ContainSubstring("dTpw"), "no credentials in the log")
	})
	t.Run("When the kubelet doesn't start the file should be as it was, after three attempts", func(t *testing.T) {
		g := NewWithT(t)
		n := newNode(t, func(*node) error { return errors.New("no bus") })
		n.put(t, n.kubelet, ours)
		n.put(t, n.global, both)
		g.Expect(n.sync(t.Context())).To(MatchError(ContainSubstring("failed 3 times, so it has its old pull secret: no bus")))
		g.Expect(n.file(t)).To(Equal(ours))
		g.Expect(n.restarts).To(Equal(3))
		g.Expect(n.pauses).To(Equal([]time.Duration{time.Second, 2 * time.Second}))
		entries, err := os.ReadDir(filepath.Dir(n.kubelet))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(HaveLen(3), "nothing is left beside")
	})
	t.Run("When there was no file and the kubelet doesn't start there should be none again", func(t *testing.T) {
		g := NewWithT(t)
		n := newNode(t, func(*node) error { return errors.New("no bus") })
		g.Expect(n.sync(t.Context())).NotTo(Succeed())
		g.Expect(n.kubelet).NotTo(BeAnExistingFile())
	})
	t.Run("When the second attempt succeeds the new file should stay", func(t *testing.T) {
		g := NewWithT(t)
		n := newNode(t, func(n *node) error {
			if n.restarts < 2 {
				return errors.New("busy")
			}
			return nil
		})
		g.Expect(n.sync(t.Context())).To(Succeed())
		g.Expect(n.file(t)).To(Equal(ours))
	})
	for name, content := range map[string]string{"empty": "", "no JSON": "x", "without auths": "{}", "auths are a list": `{"auths":[]}`, "too long": `{"auths":{"x":"` + strings.Repeat("y", maxFile) + `"}}`} {
		t.Run("When the merged pull secret is "+name+" the kubelet should keep what it has", func(t *testing.T) {
			g := NewWithT(t)
			n := newNode(t, nil)
			n.put(t, n.kubelet, ours)
			n.put(t, n.global, content)
			g.Expect(n.sync(t.Context())).NotTo(Succeed())
			g.Expect(n.file(t)).To(Equal(ours))
			g.Expect(n.restarts).To(BeZero())
		})
	}
	t.Run("When the process ends it should end without an error, and say once a look what fails", func(t *testing.T) {
		g := NewWithT(t)
		n := newNode(t, nil)
		g.Expect(os.Remove(n.original)).To(Succeed())
		ctx, cancel := context.WithCancel(t.Context())
		looks := 0
		n.pause = func(context.Context, time.Duration) error {
			if looks++; looks == 2 {
				cancel()
			}
			return ctx.Err()
		}
		g.Expect(n.run(ctx, time.Second)).To(Succeed())
		g.Expect(strings.Count(n.output.String(), "reading the pull secret")).To(Equal(2))
		g.Expect(n.run(ctx, 0)).To(MatchError(ContainSubstring("--check-interval")))
	})
}
