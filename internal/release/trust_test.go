package release_test

import (
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/release/releasetest"
)

func TestWithTrust(t *testing.T) {
	g := NewWithT(t)
	inner := releasetest.New(t)
	plain := inner.PushRelease(t, "1.36.3", inner.KubernetesTags())
	target, err := url.Parse(inner.URL)
	g.Expect(err).NotTo(HaveOccurred())
	server := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(target))
	t.Cleanup(server.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	image := strings.Replace(plain, inner.Host, strings.TrimPrefix(server.URL, "https://"), 1)

	provider := release.NewRegistryProvider(release.Options{})
	lookup := func(p *release.Registry) error {
		_, err := p.Lookup(t.Context(), image, nil)
		return err
	}
	g.Expect(lookup(provider)).To(HaveOccurred(), "nobody trusts the registry's certificate")
	g.Expect(lookup(provider.WithTrust([]byte("no certificate")))).To(HaveOccurred())
	g.Expect(lookup(provider.WithTrust(bundle))).To(Succeed())
	g.Expect(lookup(provider.WithTrust(bundle).WithMirrors([]rewrite.Mirror{{Source: "example.com/a", Mirrors: []string{"example.com/b"}}}))).To(Succeed())
	g.Expect(lookup(provider)).To(HaveOccurred(), "what somebody learned who trusts it is not told to others")
	// The answer is known to whoever trusts the same, also when the registry is gone.
	server.Close()
	g.Expect(lookup(provider.WithTrust(bundle))).To(Succeed())
	g.Expect(lookup(release.WithTrustOf(provider, bundle))).To(Succeed())
}
