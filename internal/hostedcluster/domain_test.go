package hostedcluster

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
)

// finder is a platform that knows a domain, or why not.
type finder struct {
	platform.Platform
	domain string
	err    error
	asked  *int
}

func (f finder) BaseDomain(context.Context, client.Client, client.Reader, *hyperv1.HostedCluster) (string, error) {
	*f.asked++
	return f.domain, f.err
}

func TestFindDomain(t *testing.T) {
	for name, tc := range map[string]struct {
		hc         func(*hyperv1.HostedCluster)
		kubernetes bool
		finder     finder
		want, says string
		asked      int
	}{
		"When the platform finds a domain it should be stored":   {finder: finder{domain: "apps.example.com"}, want: "apps.example.com", asked: 1},
		"When it finds none a condition should say why":          {finder: finder{err: errors.New("no Routes")}, says: "no Routes", asked: 1},
		"When it needs none nothing should change":               {asked: 1},
		"When there is one nobody should be asked":               {hc: func(hc *hyperv1.HostedCluster) { hc.Spec.DNS.BaseDomain = "example.com" }, want: "example.com"},
		"When the release is one of Kubernetes nobody should be": {kubernetes: true, finder: finder{domain: "apps.example.com"}},
		"When the cluster is paused nobody should be asked":      {hc: func(hc *hyperv1.HostedCluster) { hc.Spec.PausedUntil = ptr.To("true") }, finder: finder{domain: "apps.example.com"}},
		"When the cluster came up without one it should go on as is": {hc: func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.HasBeenAvailableAnnotation: "true"}
		}, finder: finder{domain: "apps.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
			if tc.hc != nil {
				tc.hc(hc)
			}
			scheme := runtime.NewScheme()
			g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(hc.DeepCopy()).Build()
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(hc), hc)).To(Succeed())
			asked := 0
			tc.finder.asked = &asked
			obs := &state.Observed{HC: hc, Platform: tc.finder, UserRelease: &release.Release{Kubernetes: tc.kubernetes}}
			r := &Reconciler{Client: c, Live: c, Clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))}
			g.Expect(r.findDomain(t.Context(), obs)).To(Succeed())
			stored := &hyperv1.HostedCluster{}
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(hc), stored)).To(Succeed())
			g.Expect(string(stored.Spec.DNS.BaseDomain)).To(Equal(tc.want))
			g.Expect(asked).To(Equal(tc.asked))
			if tc.says == "" {
				g.Expect(obs.DomainErr).NotTo(HaveOccurred())
			} else {
				g.Expect(obs.DomainErr).To(MatchError(tc.says))
			}
		})
	}
}
