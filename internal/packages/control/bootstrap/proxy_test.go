package bootstrap

import (
	"testing"

	. "github.com/onsi/gomega"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
)

func TestWithProxy(t *testing.T) {
	proxy := &manifests.PackageEnvironmentProxy{HTTPProxy: "http://p", NoProxy: ".local"}
	for name, tc := range map[string]struct {
		have    []string
		proxy   *manifests.PackageEnvironmentProxy
		want    []string
		changed bool
	}{
		"When there is no proxy it should leave all as it is":        {have: []string{"HTTP_PROXY=mine"}, want: []string{"HTTP_PROXY=mine"}},
		"When the proxy is new it should be there":                   {[]string{"A=b"}, proxy, []string{"A=b", "HTTP_PROXY=http://p", "NO_PROXY=.local"}, true},
		"When it is there already it should not start anew":          {[]string{"HTTP_PROXY=http://p", "NO_PROXY=.local"}, proxy, []string{"HTTP_PROXY=http://p", "NO_PROXY=.local"}, false},
		"When a variable of another proxy is there it should go":     {[]string{"HTTP_PROXY=http://p", "NO_PROXY=.local", "HTTPS_PROXY=x"}, proxy, []string{"HTTP_PROXY=http://p", "NO_PROXY=.local"}, true},
		"When a variable begins with the same name it should remain": {[]string{"NO_PROXY_EITHER=x", "HTTP_PROXY=http://p", "NO_PROXY=.local"}, proxy, []string{"NO_PROXY_EITHER=x", "HTTP_PROXY=http://p", "NO_PROXY=.local"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, changed := withProxy(tc.have, tc.proxy)
			g.Expect(got).To(Equal(tc.want))
			g.Expect(changed).To(Equal(tc.changed))
		})
	}
}
