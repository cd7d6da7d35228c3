package hostedcontrolplane

import (
	"encoding/pem"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/release"
)

func TestTrusting(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	bundle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "user-ca-bundle"}, Data: map[string]string{"ca-bundle.crt": ca}}
	provider := release.NewRegistryProvider(release.Options{})
	r := &Reconciler{Client: fake.NewClientBuilder().WithObjects(bundle).Build(), Releases: provider}
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: bundle.Namespace, Name: "demo"}}
	g.Expect(r.trusting(t.Context(), hcp)).To(BeIdenticalTo(provider), "nothing is to be trusted")
	hcp.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: "other"}
	g.Expect(r.trusting(t.Context(), hcp)).To(BeIdenticalTo(provider), "it is not there yet")
	hcp.Spec.AdditionalTrustBundle.Name = bundle.Name
	g.Expect(r.trusting(t.Context(), hcp)).NotTo(BeIdenticalTo(provider))
}
