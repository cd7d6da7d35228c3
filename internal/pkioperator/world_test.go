package pkioperator

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	certificatesv1alpha1 "hcp.internal/api/certificates/v1alpha1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/certsigner"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/testenv"
)

// world is a control plane namespace on a real API server, with the control-plane-operator and the hosted API servers played.
type world struct {
	t     testing.TB
	env   *testenv.Env
	c     client.WithWatch
	hcp   *hyperv1.HostedControlPlane
	clock *clocktesting.FakePassiveClock
	// stubborn servers go on accepting what they once accepted.
	stubborn bool
}

func newWorld(t testing.TB) *world {
	t.Helper()
	env := testenv.Start(t)
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, env: env, c: env.Client(t, scheme), clock: clocktesting.NewFakePassiveClock(time.Now())}
	w.hcp = &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "demo"}}
	spec := &w.hcp.Spec
	spec.IssuerURL, spec.PullSecret.Name, spec.Platform.Type, spec.InfraID = "https://kubernetes.default.svc", "pull-secret", hyperv1.NonePlatform, "demo"
	spec.ReleaseImage = "example.com/release:1"
	for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		spec.Services = append(spec.Services, hyperv1.ServicePublishingStrategyMapping{
			Service: service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer},
		})
	}
	spec.Etcd.ManagementType = hyperv1.Managed
	spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}
	spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}
	w.create(w.hcp)
	return w
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.c.Create(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) config(c client.Client) config {
	return config{client: c, clock: w.clock, keys: pki.NewKey, rand: rand.Reader, namespace: w.hcp.Namespace, hcp: w.hcp.Name, day: wholeDay}
}

// Accepted implements asker: servers accept what is in their bundle.
func (w *world) Accepted(ctx context.Context, newer, older *authority) (a, b, ok bool, err error) {
	cm := &corev1.ConfigMap{}
	if err := w.c.Get(ctx, client.ObjectKey{Namespace: w.hcp.Namespace, Name: pki.ClientCABundle}, cm); err != nil {
		return false, false, false, client.IgnoreNotFound(err)
	}
	trusted := parseBundle(cm, pki.CACertKey)
	return has(trusted, newer.cert), older != nil && (w.stubborn || has(trusted, older.cert)), true, nil
}

// merge is what the control-plane-operator does.
func (w *world) merge() {
	w.t.Helper()
	total, given := &corev1.ConfigMap{}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: pki.ClientCABundle}}
	err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: pki.TotalClientCABundle}, total)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if _, err := ctrl.CreateOrUpdate(w.t.Context(), w.c, given, func() error {
		given.Data = map[string]string{pki.CACertKey: total.Data[names.CABundleKey]}
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
}

// settle runs everybody until the request is done, or as often as it may take.
func (w *world) settle(c client.Client, request string) error {
	for range 30 {
		w.clock.SetTime(w.clock.Now().Add(time.Second))
		if _, err := outcome.Wrap(&rotation{w.config(c)}).Reconcile(w.t.Context(), ctrl.Request{}); err != nil {
			return err
		}
		w.merge()
		if request == "" {
			return nil
		}
		r := outcome.Wrap(&revocations{w.config(c), w})
		if _, err := r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.hcp.Namespace, Name: request}}); err != nil {
			return err
		}
		if conditions.IsTrue(w.request(request).Status.Conditions, certificatesv1alpha1.PreviousCertificatesRevokedType) {
			return nil
		}
	}
	return errors.New("it does not end")
}

func (w *world) request(name string) *certificatesv1alpha1.CertificateRevocationRequest {
	w.t.Helper()
	r := &certificatesv1alpha1.CertificateRevocationRequest{}
	if err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: name}, r); err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) authority() *x509.Certificate {
	w.t.Helper()
	secret := &corev1.Secret{}
	if err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: signers[0].secret}, secret); err != nil {
		w.t.Fatal(err)
	}
	a, err := parseAuthority(secret)
	if err != nil {
		w.t.Fatal(err)
	}
	return a.cert
}

// csr makes a CertificateSigningRequest of the customer's signer.
func (w *world) csr(name string, template x509.CertificateRequest, mutate ...func(*certificatesv1.CertificateSigningRequestSpec)) *certificatesv1.CertificateSigningRequest {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		w.t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: w.hcp.Namespace + "-" + name}, Spec: certificatesv1.CertificateSigningRequestSpec{
		Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		SignerName: certsigner.Name(w.hcp.Namespace, certificatesv1alpha1.CustomerBreakGlassSigner),
		Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}, ExpirationSeconds: ptr.To[int32](3600),
	}}
	for _, f := range mutate {
		f(&csr.Spec)
	}
	w.create(csr)
	w.t.Cleanup(func() { _ = w.c.Delete(context.WithoutCancel(w.t.Context()), csr) })
	return csr
}

func (w *world) answer(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	w.t.Helper()
	if _, err := outcome.Wrap(&requests{w.config(w.c)}).Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: csr.Name}}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.c.Get(w.t.Context(), client.ObjectKeyFromObject(csr), csr); err != nil {
		w.t.Fatal(err)
	}
	return csr
}

func TestConsent(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		requested time.Duration // after the consent
		deleting  bool
		want      bool
	}{
		"When the request was there before it should be approved":                          {requested: -time.Minute, want: true},
		"When both were made in the same second it should be approved":                     {want: true},
		"When clocks of API servers differ a little it should be approved":                 {requested: 10 * time.Second, want: true},
		"When another request takes the name of one that has ended it should be left":      {requested: time.Hour},
		"When the request comes later than clocks of API servers differ it should be left": {requested: 11 * time.Second},
		"When the consent is being taken back it should be left":                           {requested: -time.Minute, deleting: true},
	} {
		t.Run(name, func(t *testing.T) {
			consent := &certificatesv1alpha1.CertificateSigningRequestApproval{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at)}}
			if tc.deleting {
				consent.DeletionTimestamp = ptr.To(metav1.NewTime(at))
			}
			csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at.Add(tc.requested))}}
			NewWithT(t).Expect(isFor(consent, csr)).To(Equal(tc.want))
		})
	}
}

func TestRequests(t *testing.T) {
	w := newWorld(t)
	g := NewWithT(t)
	g.Expect(w.settle(w.c, "")).To(Succeed())
	good := x509.CertificateRequest{Subject: pkix.Name{CommonName: signers[0].prefix + "jane", Organization: []string{"system:masters"}}}
	approve := func(csr *certificatesv1.CertificateSigningRequest) {
		w.create(&certificatesv1alpha1.CertificateSigningRequestApproval{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: csr.Name}})
	}
	t.Run("When nobody approves it should wait", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.answer(w.csr("waits", good)).Status.Conditions).To(BeEmpty())
	})
	t.Run("When it is approved by name it should approve, then sign what the API servers accept", func(t *testing.T) {
		g := NewWithT(t)
		csr := w.csr("good", good)
		approve(csr)
		g.Expect(w.answer(csr).Status.Conditions).To(HaveLen(1))
		g.Expect(csr.Status.Conditions[0].Reason).To(Equal("ApprovalPresent"))
		w.answer(csr)
		block, _ := pem.Decode(csr.Status.Certificate)
		cert, err := x509.ParseCertificate(block.Bytes)
		g.Expect(err).NotTo(HaveOccurred())
		roots := x509.NewCertPool()
		roots.AddCert(w.authority())
		_, err = cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: w.clock.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cert.Subject.CommonName).To(Equal("system:customer-break-glass:jane"))
		g.Expect(cert.Subject.Organization).To(Equal([]string{"system:masters"}))
		g.Expect(cert.NotAfter).To(BeTemporally("~", w.clock.Now().Add(time.Hour), time.Second))
		g.Expect(cert.NotBefore).To(BeTemporally("~", w.clock.Now().Add(-5*time.Minute), time.Second))
	})
	for name, tc := range map[string]struct {
		template x509.CertificateRequest
		mutate   func(*certificatesv1.CertificateSigningRequestSpec)
		message  string
	}{
		"When the name is not one of the class it should refuse": {template: x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:admin"}},
			message: `invalid certificate request: the common name must begin with "system:customer-break-glass:"`},
		"When a server certificate is asked for it should refuse": {template: good, mutate: func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.Usages = append(s.Usages, certificatesv1.UsageServerAuth)
		}, message: `invalid usages: only "client auth", "digital signature" and "key encipherment" are signed, not "server auth"`},
		"When there are other names it should refuse": {template: x509.CertificateRequest{Subject: good.Subject, DNSNames: []string{"kubernetes"}},
			message: "invalid certificate request: subject alternative names are not signed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			csr := w.csr(fmt.Sprintf("bad-%x", name[10:16]), tc.template, func(s *certificatesv1.CertificateSigningRequestSpec) {
				if tc.mutate != nil {
					tc.mutate(s)
				}
			})
			approve(csr)
			w.answer(csr)
			w.answer(csr)
			g.Expect(csr.Status.Certificate).To(BeEmpty())
			g.Expect(csr.Status.Conditions).To(HaveLen(2))
			g.Expect(csr.Status.Conditions[1].Type).To(Equal(certificatesv1.CertificateFailed))
			g.Expect(csr.Status.Conditions[1].Reason).To(Equal("SignerValidationFailure"))
			g.Expect(csr.Status.Conditions[1].Message).To(Equal(tc.message))
		})
	}
	t.Run("When it is for the signer of another control plane it should leave it", func(t *testing.T) {
		g := NewWithT(t)
		csr := w.csr("foreign", good, func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.SignerName = certsigner.Name("other", certificatesv1alpha1.CustomerBreakGlassSigner)
		})
		approve(csr)
		g.Expect(w.answer(csr).Status.Conditions).To(BeEmpty())
	})
}

func (w *world) revocation(name string) *certificatesv1alpha1.CertificateRevocationRequest {
	r := &certificatesv1alpha1.CertificateRevocationRequest{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: name}}
	r.Spec.SignerClass = certificatesv1alpha1.CustomerBreakGlassSigner
	w.create(r)
	return r
}

// revoked asserts the end of a revocation of the authority before.
func (w *world) revoked(t testing.TB, name string, before *x509.Certificate) {
	t.Helper()
	g := NewWithT(t)
	r := w.request(name)
	for _, kind := range []string{"SignerClassValid", "RootCertificatesRegenerated", "NewCertificatesTrusted", "LeafCertificatesRegenerated", "PreviousCertificatesRevoked"} {
		c := conditions.Get(r.Status.Conditions, kind)
		g.Expect(c).NotTo(BeNil(), kind)
		g.Expect(string(c.Status)+" "+c.Reason).To(Equal("True AsExpected"), kind)
	}
	after := w.authority()
	g.Expect(after.Equal(before)).To(BeFalse())
	g.Expect(after.NotBefore.After(r.Status.RevocationTimestamp.Time)).To(BeTrue())
	total := &corev1.ConfigMap{}
	g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: pki.TotalClientCABundle}, total)).To(Succeed())
	g.Expect(has(parseBundle(total, names.CABundleKey), after)).To(BeTrue())
	g.Expect(has(parseBundle(total, names.CABundleKey), before)).To(BeFalse())
	leaf := &corev1.Secret{}
	g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: signers[0].client}, leaf)).To(Succeed())
	cert, err := parseAuthority(leaf)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cert.cert.CheckSignatureFrom(after)).To(Succeed())
	previous := &corev1.Secret{}
	g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: r.Status.PreviousSigner.Name}, previous)).To(Succeed())
	g.Expect(bytes.Equal(previous.Data[corev1.TLSCertKey], encode(before.Raw))).To(BeTrue())
}

func TestRevocation(t *testing.T) {
	t.Run("When a signer is revoked it should end with another one, and be quiet then", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(w.c, "")).To(Succeed())
		before := w.authority()
		w.revocation("leaked")
		g.Expect(w.settle(w.c, "leaked")).To(Succeed())
		w.revoked(t, "leaked", before)
		testenv.ExpectQuiet(t, w.c, func(c client.WithWatch) error { return w.settle(c, "leaked") })
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(w.c.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), hcp)).To(Succeed())
		for _, kind := range []string{"CertRotation_CustomerAdminKubeconfigSigner_Degraded", "CertRotation_SREAdminKubeconfigSigner_Degraded", "TargetConfigControllerDegraded"} {
			g.Expect(conditions.IsFalse(hcp.Status.Conditions, kind)).To(BeTrue(), kind)
		}
	})
	t.Run("When servers go on accepting the old signer it should say so after ten minutes", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(w.c, "")).To(Succeed())
		w.stubborn = true
		w.revocation("leaked")
		g.Expect(w.settle(w.c, "leaked")).NotTo(Succeed())
		g.Expect(conditions.Get(w.request("leaked").Status.Conditions, "PreviousCertificatesRevoked").Reason).To(Equal(hyperv1.WaitingForAvailableReason))
		w.clock.SetTime(w.clock.Now().Add(rejectionTimeout))
		g.Expect(w.settle(w.c, "leaked")).NotTo(Succeed())
		g.Expect(conditions.Get(w.request("leaked").Status.Conditions, "PreviousCertificatesRevoked").Reason).To(Equal("RevocationVerificationTimeout"))
		w.stubborn = false
		g.Expect(w.settle(w.c, "leaked")).To(Succeed())
	})
}

func TestCrash(t *testing.T) {
	fresh := func(t testing.TB) testenv.CrashCase {
		w := newWorld(t)
		if err := w.settle(w.c, ""); err != nil {
			t.Fatal(err)
		}
		before := w.authority()
		w.revocation("leaked")
		return testenv.CrashCase{
			Client: w.c,
			Run:    func(c client.WithWatch) error { return w.settle(c, "leaked") },
			Check:  func(t testing.TB) { w.revoked(t, "leaked", before) },
		}
	}
	testenv.CrashAtEveryWrite(t, 1, fresh)
	testenv.Storm(t, 2, fresh)
}
