package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"hcp.internal/platform/internal/contract/names"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// testKeys gives fresh ECDSA keys, which cost nothing, and one RSA key for all, which is expensive.
var testKeys = func() KeySource {
	shared := sync.OnceValues(func() (crypto.Signer, error) { return NewKey(RSA) })
	return func(kind KeyKind) (crypto.Signer, error) {
		if kind == RSA {
			return shared()
		}
		return NewKey(kind)
	}
}()

func source(now time.Time) Source { return Source{Now: now, Keys: testKeys, Rand: rand.Reader} }

func demo(mutate ...func(*Spec)) Spec {
	s := Spec{
		Namespace: "clusters-demo", Name: "demo", InfraID: "demo-abcde",
		Owner:   metav1.OwnerReference{APIVersion: "hypershift.openshift.io/v1beta1", Kind: "HostedControlPlane", Name: "demo", UID: "1"},
		APIHost: "10.97.0.1", APIPort: 6443, AdvertiseAddress: "10.97.0.1", InternalAPIPort: 6443, PodAPIPort: 6443,
		ServiceCIDRs: []string{"172.31.0.0/16"},
	}
	for _, m := range mutate {
		m(&s)
	}
	return s
}

// apply stores a plan as the API server would.
func apply(obs Observed, p Plan) Observed {
	out := Observed{Secrets: map[string]*corev1.Secret{}, ConfigMaps: map[string]*corev1.ConfigMap{}}
	for k, v := range obs.Secrets {
		out.Secrets[k] = v.DeepCopy()
	}
	for k, v := range obs.ConfigMaps {
		out.ConfigMaps[k] = v.DeepCopy()
	}
	for _, w := range slices.Concat(p.Authorities, p.Leaves, p.Copies) {
		if w.Secret != nil {
			out.Secrets[w.Secret.Name] = w.Secret.DeepCopy()
		} else {
			out.ConfigMaps[w.ConfigMap.Name] = w.ConfigMap.DeepCopy()
		}
	}
	for _, s := range p.Delete {
		delete(out.Secrets, s.Name)
	}
	return out
}

func reasons(p Plan) map[string]string {
	out := map[string]string{}
	for _, w := range slices.Concat(p.Authorities, p.Leaves, p.Copies) {
		out[w.name()] = w.Reason
	}
	return out
}

func settled(t interface{ Fatalf(string, ...any) }, spec Spec, now time.Time) Observed {
	p := PlanFor(spec, Observed{}, source(now))
	if len(p.Problems) > 0 {
		t.Fatalf("problems: %v", errors.Join(p.Problems...))
	}
	return apply(Observed{}, p)
}

func TestPlanFor(t *testing.T) {
	t.Run("When nothing exists it should plan every authority, leaf, bundle and kubeconfig", func(t *testing.T) {
		g := NewWithT(t)
		obs := settled(t, demo(), noon)
		g.Expect(obs.Secrets).To(HaveLen(11 + 1 + 21 + 9))
		g.Expect(obs.ConfigMaps).To(HaveLen(7))
		for name, s := range obs.Secrets {
			g.Expect(s.OwnerReferences).To(HaveLen(1), name)
			g.Expect(s.Namespace).To(Equal("clusters-demo"))
		}
	})

	t.Run("When the API host is not known it should plan all but what names it", func(t *testing.T) {
		g := NewWithT(t)
		obs := settled(t, demo(func(s *Spec) { s.APIHost, s.APIPort, s.AdvertiseAddress = "", 0, "" }), noon)
		for _, name := range []string{KASServer, AdminKubeconfig, NodeBootstrapKubeconfig} {
			g.Expect(obs.Secrets).NotTo(HaveKey(name))
		}
		g.Expect(obs.Secrets).To(HaveKey(EtcdServer))
		later := PlanFor(demo(), obs, source(noon))
		g.Expect(reasons(later)).To(HaveLen(3))
	})

	t.Run("When reconciliation is disabled it should plan nothing", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(PlanFor(demo(func(s *Spec) { s.Disabled = true }), Observed{}, source(noon))).To(Equal(Plan{}))
	})

	t.Run("When an authority cannot be read it should say so and leave it and its leaves alone", func(t *testing.T) {
		g := NewWithT(t)
		obs := settled(t, demo(), noon)
		obs.Secrets[RootCA].Data[CACertKey] = []byte("mistake")
		p := PlanFor(demo(), obs, source(noon))
		g.Expect(p.Empty()).To(BeTrue())
		g.Expect(p.Problems).To(HaveLen(1))
		g.Expect(p.Problems[0]).To(MatchError(ContainSubstring("reading certificate authority clusters-demo/root-ca: reading the certificate: no certificate in PEM data; restore the secret, or delete it")))
	})

	t.Run("When an authority was deleted it should make a new one and issue again what the old one signed", func(t *testing.T) {
		g := NewWithT(t)
		obs := settled(t, demo(), noon)
		delete(obs.Secrets, EtcdSigner)
		p := PlanFor(demo(), obs, source(noon))
		g.Expect(reasons(p)).To(And(HaveLen(5),
			HaveKey("secret clusters-demo/etcd-signer"),
			HaveKeyWithValue("secret clusters-demo/etcd-client-tls", `it was not signed by the present key of "etcd-signer"`),
			HaveKey("secret clusters-demo/etcd-server-tls"), HaveKey("secret clusters-demo/etcd-peer-tls"), HaveKey("config map clusters-demo/etcd-ca")))
		g.Expect(PlanFor(demo(), apply(obs, p), source(noon)).Empty()).To(BeTrue())
	})

	t.Run("When the user provides the service account key it should wait for the copy and never write it", func(t *testing.T) {
		g := NewWithT(t)
		spec := demo(func(s *Spec) { s.UserServiceAccountKey = true })
		p := PlanFor(spec, Observed{}, source(noon))
		g.Expect(p.Problems).To(ConsistOf(MatchError(ContainSubstring("waiting for secret clusters-demo/sa-signing-key"))))
		g.Expect(reasons(p)).NotTo(HaveKey("secret clusters-demo/sa-signing-key"))

		key, err := testKeys(RSA)
		g.Expect(err).NotTo(HaveOccurred())
		private, err := encodeKey(key)
		g.Expect(err).NotTo(HaveOccurred())
		obs := Observed{Secrets: map[string]*corev1.Secret{names.ServiceAccountKey: {Data: map[string][]byte{ServiceAccountPrivateKeyKey: private, ServiceAccountPublicKeyKey: []byte("theirs")}}}}
		g.Expect(reasons(PlanFor(spec, obs, source(noon)))).NotTo(HaveKey(ContainSubstring("sa-signing-key")))
	})

	t.Run("When only the public half of the service account key is missing it should add it", func(t *testing.T) {
		g := NewWithT(t)
		obs := settled(t, demo(), noon)
		before := obs.Secrets[names.ServiceAccountKey].DeepCopy()
		delete(obs.Secrets[names.ServiceAccountKey].Data, ServiceAccountPublicKeyKey)
		after := apply(obs, PlanFor(demo(), obs, source(noon)))
		g.Expect(after.Secrets[names.ServiceAccountKey].Data).To(Equal(before.Data))
		g.Expect(string(before.Data[ServiceAccountPublicKeyKey])).To(HavePrefix("-----BEGIN RSA PUBLIC KEY-----"))
		g.Expect(string(before.Data[ServiceAccountPrivateKeyKey])).To(HavePrefix("-----BEGIN RSA PRIVATE KEY-----"))
	})

	t.Run("When etcd has a shard it should have certificates of its own for its own names", func(t *testing.T) {
		g := NewWithT(t)
		secrets := settled(t, demo(func(s *Spec) { s.EtcdShards = []string{"events"} }), noon).Secrets
		for secret, want := range map[string][]string{
			"etcd-events-server-tls/server.crt": {"*.etcd-discovery-events.clusters-demo.svc", "*.etcd-discovery-events.clusters-demo.svc.cluster.local",
				"etcd-client-events", "etcd-client-events.clusters-demo.svc", "etcd-client-events.clusters-demo.svc.cluster.local", "localhost"},
			"etcd-events-peer-tls/peer.crt": {"*.etcd-discovery-events.clusters-demo.svc", "*.etcd-discovery-events.clusters-demo.svc.cluster.local"},
		} {
			name, key, _ := strings.Cut(secret, "/")
			g.Expect(secrets).To(HaveKey(name))
			block, _ := pem.Decode(secrets[name].Data[key])
			g.Expect(block).NotTo(BeNil(), secret)
			cert, err := x509.ParseCertificate(block.Bytes)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cert.DNSNames).To(ConsistOf(want), secret)
			g.Expect(cert.Issuer.CommonName).To(Equal("etcd-signer"))
		}
		g.Expect(secrets).To(HaveKey(EtcdServer))
	})

	t.Run("When etcd is not ours it should issue nothing for it and trust its authority", func(t *testing.T) {
		g := NewWithT(t)
		spec := demo(func(s *Spec) { s.UnmanagedEtcd = true })
		g.Expect(PlanFor(spec, Observed{}, source(noon)).Problems).To(ConsistOf(MatchError(ContainSubstring("spec.etcd.unmanaged.tls.clientSecret"))))
		theirs := settled(t, demo(), noon).Secrets[EtcdSigner].Data[CACertKey]
		copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: EtcdClient}, Data: map[string][]byte{"etcd-client-ca.crt": theirs}}
		obs := Observed{Secrets: map[string]*corev1.Secret{EtcdClient: copied}}
		p := PlanFor(spec, obs, source(noon))
		g.Expect(p.Problems).To(BeEmpty())
		got := apply(obs, p)
		g.Expect(got.ConfigMaps[EtcdCABundle].Data[CACertKey]).To(Equal(string(theirs)))
		g.Expect(got.Secrets).NotTo(Or(HaveKey(EtcdSigner), HaveKey(EtcdServer), HaveKey(EtcdPeer)))
		g.Expect(got.Secrets[EtcdClient]).To(Equal(copied))
	})

	t.Run("When the custom API name is removed it should delete its kubeconfig", func(t *testing.T) {
		g := NewWithT(t)
		obs := settled(t, demo(func(s *Spec) { s.CustomAPIHost = "api.example.com" }), noon)
		g.Expect(obs.Secrets).To(HaveKey(CustomAdminKubeconfig))
		after := apply(obs, PlanFor(demo(), obs, source(noon)))
		g.Expect(after.Secrets).NotTo(HaveKey(CustomAdminKubeconfig))
		g.Expect(PlanFor(demo(), after, source(noon)).Empty()).To(BeTrue())
	})

	t.Run("When a service CIDR cannot be read it should say which and issue no leaf", func(t *testing.T) {
		g := NewWithT(t)
		p := PlanFor(demo(func(s *Spec) { s.ServiceCIDRs = []string{"172.31.0.0/99"} }), Observed{}, source(noon))
		g.Expect(p.Problems).To(ConsistOf(MatchError(ContainSubstring(`parsing service CIDR "172.31.0.0/99"`))))
		g.Expect(p.Leaves).To(BeEmpty())
	})
}

func TestReissue(t *testing.T) {
	year := DefaultValidity
	for name, tc := range map[string]struct {
		spec   Spec
		change func(Observed)
		now    time.Time
		want   map[string]string // of leaves
	}{
		"When nothing changed it should keep everything": {spec: demo(), want: map[string]string{}},
		"When the API host changes it should issue the serving certificate again": {
			spec: demo(func(s *Spec) { s.APIHost, s.AdvertiseAddress = "10.97.0.2", "10.97.0.2" }),
			want: map[string]string{KASServer: "its names change: added 10.97.0.2, removed 10.97.0.1"},
		},
		"When the user adds a name for the API it should be in the serving certificate": {
			spec: demo(func(s *Spec) { s.CustomAPIHost = "api.example.com" }),
			want: map[string]string{KASServer: "its names change: added api.example.com, removed none"},
		},
		"When a key is lost it should issue its certificate again": {
			spec:   demo(),
			change: func(o Observed) { delete(o.Secrets[KCMClient].Data, TLSKeyKey) },
			want:   map[string]string{KCMClient: "there is none yet"},
		},
		"When a key of another certificate is found it should issue again": {
			spec:   demo(),
			change: func(o Observed) { o.Secrets[KCMClient].Data[TLSKeyKey] = o.Secrets[SchedulerClient].Data[TLSKeyKey] },
			want:   map[string]string{KCMClient: errKeyMismatch.Error()},
		},
		"When a certificate is malformed it should issue again": {
			spec: demo(),
			change: func(o Observed) {
				o.Secrets[EtcdPeer].Data["peer.crt"] = []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
			},
			want: map[string]string{EtcdPeer: "reading the certificate: x509: malformed certificate"},
		},
		"When somebody gives a client more power it should issue again": {
			spec: demo(),
			change: func(o Observed) {
				copyPair(o.Secrets[HCCOClient], o, HCCOSigner, leaf{name: "system:hosted-cluster-config", orgs: []string{"system:masters"}, usages: clientAuth})
			},
			want: map[string]string{HCCOClient: `its subject is "CN=system:hosted-cluster-config,O=system:masters", not "system:hosted-cluster-config" of ["kubernetes" "system:serviceaccounts:openshift"]`},
		},
		"When a client certificate could also serve it should issue again": {
			spec: demo(),
			change: func(o Observed) {
				copyPair(o.Secrets[KCMClient], o, ControlPlaneSigner, leaf{name: "system:kube-controller-manager", orgs: []string{"kubernetes"}, usages: bothAuth})
			},
			want: map[string]string{KCMClient: "its extended key usage differs"},
		},
		"When the copy of the authority is edited it should issue again": {
			spec:   demo(),
			change: func(o Observed) { o.Secrets[KonnectivityAgent].Data[CACertKey] = []byte("x") },
			want:   map[string]string{KonnectivityAgent: "its copy of the authority is out of date"},
		},
		"When 31 days are left it should keep all but the credential of new machines":         {spec: demo(), now: noon.Add(year - 31*24*time.Hour), want: map[string]string{NodeBootstrapClient: "it expires at 2026-06-08T11:55:00Z"}},
		"When the clock went back by an hour it should issue all again":                       {spec: demo(), now: noon.Add(-time.Hour), want: all("it is not valid before 2026-06-01T11:55:00Z")},
		"When 30 days are left it should issue all again":                                     {spec: demo(), now: noon.Add(year - 30*24*time.Hour), want: with(all("it expires at 2027-06-01T11:55:00Z"), NodeBootstrapClient, "it expires at 2026-06-08T11:55:00Z")},
		"When a third of a week is left it should issue the credential of new machines again": {spec: demo(), now: noon.Add(bootstrapValidity*2/3 + time.Hour), want: map[string]string{NodeBootstrapClient: "it expires at 2026-06-08T11:55:00Z"}},
		"When more is left it should keep that, too":                                          {spec: demo(), now: noon.Add(bootstrapValidity*2/3 - time.Hour), want: map[string]string{}},
		"When the validity is edited it should issue all again": {
			spec: demo(func(s *Spec) { s.Validity = 24 * time.Hour }),
			want: with(all("it was issued for 8760h0m0s, not 24h0m0s"), NodeBootstrapClient, "it was issued for 168h0m0s, not 24h0m0s"),
		},
		"When the renewal share is set it should renew by it": {
			spec: demo(func(s *Spec) { s.RenewShare = 0.5 }), now: noon.Add(year/2 + time.Hour),
			want: with(all("it expires at 2027-06-01T11:55:00Z"), NodeBootstrapClient, "it expires at 2026-06-08T11:55:00Z"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			obs := settled(t, demo(), noon)
			if tc.change != nil {
				tc.change(obs)
			}
			now := tc.now
			if now.IsZero() {
				now = noon
			}
			p := PlanFor(tc.spec, obs, source(now))
			g.Expect(p.Problems).To(BeEmpty())
			g.Expect(p.Authorities).To(BeEmpty())
			got := map[string]string{}
			for _, w := range p.Leaves {
				got[w.Secret.Name] = w.Reason
			}
			g.Expect(got).To(Equal(tc.want))
			g.Expect(PlanFor(tc.spec, apply(obs, p), source(now)).Empty()).To(BeTrue(), "the second plan")
		})
	}
}

// all is the same reason for every leaf of the demo.
func all(reason string) map[string]string {
	leaves, err := demo().leaves()
	if err != nil {
		panic(err)
	}
	out := map[string]string{}
	for _, l := range leaves {
		out[l.secret] = reason
	}
	return out
}

// with is reasons but for one leaf.
func with(reasons map[string]string, secret, reason string) map[string]string {
	reasons[secret] = reason
	return reasons
}

// copyPair puts a certificate into a Secret that the right authority signed for something else.
func copyPair(into *corev1.Secret, obs Observed, signer string, l leaf) {
	ca, err := parsePair(obs.Secrets[signer].Data[CACertKey], obs.Secrets[signer].Data[CAKeyKey])
	if err != nil {
		panic(err)
	}
	issued, err := issueLeaf(l, ca, demo(), source(noon))
	if err != nil {
		panic(err)
	}
	into.Data[TLSCertKey], into.Data[TLSKeyKey] = issued.certPEM, issued.keyPEM
}

func TestServingNames(t *testing.T) {
	for name, tc := range map[string]struct {
		spec   Spec
		secret string
		entry  string
		dns    []string
		ips    []string
	}{
		"When the API is published by IP it should serve that IP and all inner names": {
			spec: demo(), secret: KASServer, entry: TLSCertKey,
			dns: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
				"openshift", "openshift.default", "openshift.default.svc", "openshift.default.svc.cluster.local", "api.demo.hypershift.local"},
			ips: []string{"127.0.0.1", "::1", "172.31.0.1", "10.97.0.1"},
		},
		"When the API is published by name it should serve the name and the advertised address": {
			spec: demo(func(s *Spec) {
				s.APIHost, s.AdvertiseAddress, s.ServiceCIDRs = "api.example.com", "172.20.0.1", []string{"172.31.0.0/16", "fd01::/112"}
			}), secret: KASServer, entry: TLSCertKey,
			dns: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "api.example.com",
				"openshift", "openshift.default", "openshift.default.svc", "openshift.default.svc.cluster.local", "api.demo.hypershift.local"},
			ips: []string{"127.0.0.1", "::1", "172.31.0.1", "fd01::1", "172.20.0.1"},
		},
		"When pods of the management cluster connect it should serve the Service's names": {
			spec: demo(), secret: KASServerPrivate, entry: TLSCertKey,
			dns: []string{"kube-apiserver", "kube-apiserver.clusters-demo.svc", "kube-apiserver.clusters-demo.svc.cluster.local"},
		},
		"When etcd members talk to each other they should match by wildcard": {
			spec: demo(), secret: EtcdPeer, entry: "peer.crt",
			dns: []string{"*.etcd-discovery.clusters-demo.svc", "*.etcd-discovery.clusters-demo.svc.cluster.local"},
			ips: []string{"127.0.0.1", "::1"},
		},
		"When clients connect to etcd it should serve the client Service's names": {
			spec: demo(), secret: EtcdServer, entry: "server.crt",
			dns: []string{"*.etcd-discovery.clusters-demo.svc", "*.etcd-discovery.clusters-demo.svc.cluster.local",
				"etcd-client.clusters-demo.svc", "etcd-client.clusters-demo.svc.cluster.local", "etcd-client", "localhost"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obs := settled(t, tc.spec, noon)
			cert, err := parseCertificate(obs.Secrets[tc.secret].Data[tc.entry])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cert.DNSNames).To(ConsistOf(tc.dns))
			var ips []string
			for _, ip := range cert.IPAddresses {
				ips = append(ips, ip.String())
			}
			g.Expect(ips).To(ConsistOf(tc.ips))
		})
	}
}

func TestKubeconfigs(t *testing.T) {
	g := NewWithT(t)
	spec := demo(func(s *Spec) { s.NamedCertificates = []string{"mine"} })
	theirs := settled(t, demo(), noon).Secrets[RootCA]
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Data: map[string][]byte{
		TLSCertKey: slices.Concat(theirs.Data[CACertKey], theirs.Data[CAKeyKey]), // a person who put the key into the same file
	}}
	obs := Observed{Secrets: map[string]*corev1.Secret{"mine": mine}}
	obs = apply(obs, PlanFor(spec, obs, source(noon)))
	for name, want := range map[string]struct{ key, server string }{
		AdminKubeconfig:                {KubeconfigKey, "https://10.97.0.1:6443"},
		NodeBootstrapKubeconfig:        {KubeconfigKey, "https://10.97.0.1:6443"},
		names.ServiceNetworkKubeconfig: {KubeconfigKey, "https://kube-apiserver:6443"},
		LocalhostKubeconfig:            {KubeconfigKey, "https://localhost:6443"},
		KASBootstrapKubeconfig:         {KubeconfigKey, "https://localhost:6443"},
		HCCOKubeconfig:                 {KubeconfigKey, "https://kube-apiserver:6443"},
		KCMKubeconfig:                  {KubeconfigKey, "https://kube-apiserver:6443"},
		SchedulerKubeconfig:            {KubeconfigKey, "https://kube-apiserver:6443"},
		"demo-abcde-kubeconfig":        {CAPIKubeconfigKey, "https://kube-apiserver:6443"},
	} {
		data := obs.Secrets[name].Data[want.key]
		cfg, err := clientcmd.RESTConfigFromKubeConfig(data)
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(cfg.Host).To(Equal(want.server), name)
		root := obs.Secrets[RootCA].Data[CACertKey]
		if name == AdminKubeconfig {
			g.Expect(cfg.CAData).To(Equal(slices.Concat(root, theirs.Data[CACertKey])), "no private key of a named certificate may leak into a kubeconfig")
		} else {
			g.Expect(cfg.CAData).To(Equal(root), name)
		}
	}
	g.Expect(ServerURL("fd00::1", 6443)).To(Equal("https://[fd00::1]:6443"))
}

func TestClientSigner(t *testing.T) {
	g := NewWithT(t)
	obs := settled(t, demo(), noon)
	signer, err := NewClientSigner(demo(), obs.Secrets[ClusterSigner], source(noon))
	g.Expect(err).NotTo(HaveOccurred())
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}
	certPEM, keyPEM, err := signer.SignClient("system:serviceaccount:kube-system:x", groups)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(signer.NeedsSigning(certPEM, keyPEM, "system:serviceaccount:kube-system:x", groups)).To(BeEmpty())
	g.Expect(signer.NeedsSigning(certPEM, keyPEM, "system:serviceaccount:kube-system:y", groups)).To(ContainSubstring("its subject is"))
	g.Expect(signer.NeedsSigning(nil, nil, "x", nil)).To(Equal("there is none yet"))
}
