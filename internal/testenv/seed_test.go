package testenv

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestSeed(t *testing.T) {
	binary := KubeBinary(t)
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
	seed := filepath.Join(t.TempDir(), "seeds", "one")
	// begin starts an API server from the seed and returns the names of the HostedClusters in it, to which it adds one.
	begin := func(t *testing.T, name string) []string {
		t.Helper()
		g := NewWithT(t)
		env := &Env{dir: t.TempDir(), binary: binary}
		t.Cleanup(env.kill)
		g.Expect(env.setUp(seed)).To(Succeed())
		c := env.Client(t, scheme)
		list := &hyperv1.HostedClusterList{}
		g.Expect(c.List(t.Context(), list)).To(Succeed())
		g.Expect(c.Create(t.Context(), HostedCluster("default", name))).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &hyperv1.HostedCluster{})).To(Succeed())
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names
	}
	t.Run("When there is no seed it should make one, without anything that a test adds later", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(begin(t, "first")).To(BeEmpty())
		_, err := os.Stat(seed)
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When there is one it should begin with the definitions and without what another test added", func(t *testing.T) {
		NewWithT(t).Expect(begin(t, "second")).To(BeEmpty())
	})
	t.Run("When it is damaged it should begin with nothing and make it anew", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(filepath.WalkDir(seed, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return os.WriteFile(path, bytes.Repeat([]byte("damaged"), page), 0o600)
		})).To(Succeed())
		g.Expect(begin(t, "third")).To(BeEmpty())
		g.Expect(plant(seed, t.TempDir())).To(Succeed())
	})
}

func TestSeedFolder(t *testing.T) {
	mine := caches
	t.Cleanup(func() { caches = mine })
	caches = t.TempDir()
	binary := filepath.Join(t.TempDir(), "kube")
	NewWithT(t).Expect(os.WriteFile(binary, []byte("a"), 0o600)).To(Succeed())
	t.Run("When the bundle is another one the seed should be, too", func(t *testing.T) {
		g := NewWithT(t)
		before := seedFolder(binary)
		g.Expect(before).NotTo(BeEmpty())
		g.Expect(seedFolder(binary)).To(Equal(before))
		g.Expect(os.WriteFile(binary, []byte("ab"), 0o600)).To(Succeed())
		g.Expect(seedFolder(binary)).NotTo(Equal(before))
	})
	t.Run("When there is no folder of caches there should be no seed", func(t *testing.T) {
		caches = ""
		NewWithT(t).Expect(seedFolder(binary)).To(BeEmpty())
	})
	t.Run("When a file of a source is another one its hash should be, too, unless it is a test", func(t *testing.T) {
		g := NewWithT(t)
		folder := t.TempDir()
		hash := func(name, content string) string {
			g.Expect(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600)).To(Succeed())
			var out bytes.Buffer
			g.Expect(hashFiles(&out, folder)).To(Succeed())
			return out.String()
		}
		first := hash("a.go", "a")
		g.Expect(hash("a.go", "b")).NotTo(Equal(first))
		g.Expect(hash("a.go", "a")).To(Equal(first))
		g.Expect(hash("a_test.go", "c")).To(Equal(first))
	})
}

func TestCopyLog(t *testing.T) {
	for name, c := range map[string]struct {
		content []byte
		want    int
	}{
		"When a log is empty it should stay so":                              {nil, 0},
		"When a log has zeros at its end some of them should be copied":      {append([]byte("abc"), make([]byte, 10*page)...), 2 * page},
		"When its end is near the end of the file it should be copied whole": {bytes.Repeat([]byte{1}, page+1), page + 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			from, to := filepath.Join(t.TempDir(), "from.wal"), filepath.Join(t.TempDir(), "to.wal")
			g.Expect(os.WriteFile(from, c.content, 0o600)).To(Succeed())
			g.Expect(copyLog(from, to)).To(Succeed())
			got, err := os.ReadFile(to)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(HaveLen(c.want))
			g.Expect(bytes.TrimRight(got, "\x00")).To(Equal(bytes.TrimRight(c.content, "\x00")))
		})
	}
}
