package hostedcontrolplane

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/testenv"
)

func TestOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		check   func(Gomega, settings)
		want    string
	}{
		"When the namespace is missing it should say so": {want: "--namespace must name the control plane namespace"},
		"When an override is malformed it should quote it": {
			options: Options{Namespace: "a", ImageOverrides: "etcd"}, want: `--image-overrides: "etcd" must be written as name=value`,
		},
		"When an old operator writes an equals sign for nothing it should mean nothing": {
			options: Options{Namespace: "a", ImageOverrides: "=", RegistryOverrides: "=", MirrorOverrides: "="},
			check: func(g Gomega, s settings) {
				g.Expect(s.images.Overrides).To(BeEmpty())
				g.Expect(s.overrides).To(BeEmpty())
				g.Expect(s.mirrors).To(BeEmpty())
			},
		},
		"When the validity is too short it should say how long it must be": {
			options: Options{Namespace: "a", CertificateValidity: "1m"}, want: `CERTIFICATE_VALIDITY="1m" must be a duration of at least 10m0s`,
		},
		"When the algorithm is unknown it should list those that are known": {
			options: Options{Namespace: "a", CertificateAlgorithm: "DSA"}, want: `CERTIFICATE_KEY_ALGORITHM="DSA" must be ECDSA-P256 or RSA-2048`,
		},
		"When all is set it should be carried over": {
			options: Options{Namespace: "a", OperatorImage: "own:1", HCCOImage: "hcco:1", ImageOverrides: "etcd=e:1", RegistryOverrides: "a=b", MirrorOverrides: "c=d",
				CertificateValidity: "2160h", CertificateAlgorithm: "RSA-2048"},
			check: func(g Gomega, s settings) {
				g.Expect(s.images.Own).To(HaveKeyWithValue("hosted-cluster-config-operator", "hcco:1"))
				g.Expect(s.images.Own).To(HaveKeyWithValue("token-minter", "own:1"))
				g.Expect(s.images.Overrides).To(Equal(map[string]string{"etcd": "e:1"}))
				g.Expect(s.overrides).To(Equal([]rewrite.Override{{Source: "a", To: "b"}}))
				g.Expect(s.mirrors).To(Equal([]rewrite.Mirror{{Source: "c", Mirrors: []string{"d"}}}))
				g.Expect(s.pki).To(Equal(pki.Spec{Validity: 90 * 24 * time.Hour, KeyKind: pki.RSA}))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s, err := tc.options.parse()
			if tc.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			tc.check(g, s)
		})
	}
}

func TestImages(t *testing.T) {
	own := Images{Own: map[string]string{"controlplane-operator": "own:1", "token-minter": "own:1"}, Overrides: map[string]string{"etcd": "mine:1"}}
	for name, tc := range map[string]struct {
		images map[string]string
		want   map[string]string
	}{
		"When the release holds our programs it should use those, so that a new operator restarts nothing": {
			images: map[string]string{"controlplane-operator": "release:1", "etcd": "release-etcd:1"},
			want: map[string]string{"etcd": "mine:1", "controlplane-operator": "release:1", "hosted-cluster-config-operator": "release:1", "token-minter": "release:1",
				"availability-prober": "release:1", "socks5-proxy": "release:1", "controlplane-pki-operator": "release:1"},
		},
		"When the release does not it should use the operator's own": {
			images: map[string]string{"token-minter": "release-minter:1"},
			want:   map[string]string{"etcd": "mine:1", "controlplane-operator": "own:1", "token-minter": "release-minter:1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &release.Release{Images: tc.images}
			before := len(tc.images)
			g.Expect(own.apply(r).Images).To(Equal(tc.want))
			g.Expect(r.Images).To(HaveLen(before), "a release of the provider is shared")
		})
	}
}

func TestPKISpec(t *testing.T) {
	t.Run("When annotations cannot be read it should ignore them and say how to write them", func(t *testing.T) {
		g := NewWithT(t)
		hcp := demoHCP()
		hcp.Annotations = map[string]string{pki.ValidityAnnotation: "1s", pki.RenewalAnnotation: "30"}
		spec, problems := pkiSpec(hcp, wellObserved().Infra, pki.Spec{Validity: time.Hour}, time.Unix(1800000000, 0))
		g.Expect(problems).To(ConsistOf(MatchError(ContainSubstring("must be a duration of at least 10m0s")), MatchError(ContainSubstring("must be a number between 0 and 1"))))
		g.Expect(spec.Validity).To(Equal(time.Hour))
	})
	t.Run("When annotations are set they should win over the process's settings", func(t *testing.T) {
		g := NewWithT(t)
		hcp := demoHCP()
		hcp.Annotations = map[string]string{pki.ValidityAnnotation: "48h", pki.RenewalAnnotation: "0.3"}
		spec, problems := pkiSpec(hcp, wellObserved().Infra, pki.Spec{Validity: time.Hour}, time.Unix(1800000000, 0))
		g.Expect(problems).To(BeEmpty())
		g.Expect(spec.Validity).To(Equal(48 * time.Hour))
		g.Expect(spec.RenewShare).To(Equal(0.3))
		g.Expect(spec.APIHost).To(Equal("10.97.0.1"))
	})
	t.Run("When authorities are to be replaced it should take times that have passed and nothing else", func(t *testing.T) {
		g := NewWithT(t)
		hcp, now := demoHCP(), time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
		hcp.Annotations = map[string]string{pki.RotateBeforeAnnotation: "2026-11-01T11:59:59Z", pki.RevokeBeforeAnnotation: "2026-10-01T00:00:00+02:00"}
		spec, problems := pkiSpec(hcp, wellObserved().Infra, pki.Spec{}, now)
		g.Expect(problems).To(BeEmpty())
		g.Expect(spec.RotateBefore).To(BeTemporally("==", now.Add(-time.Second)))
		g.Expect(spec.RevokeBefore).To(BeTemporally("==", time.Date(2026, 9, 30, 22, 0, 0, 0, time.UTC)))
		hcp.Annotations = map[string]string{pki.RotateBeforeAnnotation: "2026-11-01T12:00:01Z", pki.RevokeBeforeAnnotation: "now"}
		spec, problems = pkiSpec(hcp, wellObserved().Infra, pki.Spec{}, now)
		g.Expect(problems).To(ConsistOf(MatchError(ContainSubstring("it is a time to come")), MatchError(ContainSubstring("it must be a time such as 2026-11-01T12:00:00Z"))))
		g.Expect(spec.RotateBefore).To(BeZero())
		g.Expect(spec.RevokeBefore).To(BeZero())
	})
}

func TestManagementCluster(t *testing.T) {
	env := testenv.Start(t)
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := env.Client(t, scheme)
	clk := clocktesting.NewFakePassiveClock(noon)
	g := NewWithT(t)
	for name, zone := range map[string]string{"n1-" + randomName(t, env): "a", "n2-" + randomName(t, env): "b"} {
		g.Expect(c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}})).To(Succeed())
	}

	kept := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3-" + randomName(t, env), Labels: map[string]string{corev1.LabelTopologyZone: "c", hyperv1.RequestServingComponentLabel: "true"}}}
	g.Expect(c.Create(t.Context(), kept)).To(Succeed())

	t.Run("When nothing was told it should look for itself, and pass over nodes for requests", func(t *testing.T) {
		g := NewWithT(t)
		m := newManagementCluster(c, c.RESTMapper(), "default", clk, component.Management{})
		facts := m.Facts(t.Context())
		g.Expect(facts).To(Equal(component.Management{Nodes: 2, Zones: 2, SetDefaultSecurityContext: true, NativeSidecars: true}))
	})
	t.Run("When it was told it should believe that", func(t *testing.T) {
		g := NewWithT(t)
		told := component.Management{Nodes: 1, Zones: 1}
		g.Expect(newManagementCluster(c, c.RESTMapper(), "default", clk, told).Facts(t.Context())).To(Equal(told))
	})
	t.Run("When a kind is not served it should say so, and remember", func(t *testing.T) {
		g := NewWithT(t)
		counting := &countingReader{Reader: c}
		m := newManagementCluster(counting, c.RESTMapper(), "default", clk, component.Management{})
		monitor := schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}
		for range 3 {
			got, err := m.Accessible(t.Context(), monitor)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(BeFalse())
		}
		g.Expect(counting.gets).To(Equal(1))
		routes, err := m.Routes(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(routes).To(BeFalse())
		served, err := m.Accessible(t.Context(), schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(served).To(BeTrue())
	})
}

// randomName is a name that no other test uses.
func randomName(t *testing.T, env *testenv.Env) string {
	return strings.TrimPrefix(env.Namespace(t), "test-")
}

type countingReader struct {
	client.Reader
	gets int
}

// Get implements client.Reader.
func (c *countingReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.gets++
	return c.Reader.Get(ctx, key, obj, opts...)
}
