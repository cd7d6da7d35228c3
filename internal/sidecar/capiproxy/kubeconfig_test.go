package capiproxy

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
)

func TestKubeconfig(t *testing.T) {
	t.Run("When programs beside the proxy read its kubeconfig they should find the proxy, also after it was written again", func(t *testing.T) {
		g := NewWithT(t)
		o := Options{Port: 7445, WriteKubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
		for range 2 {
			g.Expect(o.writeKubeconfig()).To(Succeed())
			cfg, err := clientcmd.BuildConfigFromFlags("", o.WriteKubeconfig)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cfg.Host).To(Equal("http://127.0.0.1:7445"))
			g.Expect(cfg.BearerToken + cfg.BearerTokenFile + cfg.CertFile).To(BeEmpty())
		}
	})
	t.Run("When it can't be written it should name the flag", func(t *testing.T) {
		o := Options{WriteKubeconfig: filepath.Join(t.TempDir(), "missing", "kubeconfig")}
		NewWithT(t).Expect(o.writeKubeconfig()).To(MatchError(ContainSubstring("--write-kubeconfig")))
	})
}
