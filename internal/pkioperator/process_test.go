package pkioperator

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	certificatesv1alpha1 "hcp.internal/api/certificates/v1alpha1"
	"hcp.internal/platform/internal/contract/certsigner"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pki"
)

// asOperator is the connection with the rights that the component and the hypershift-operator give, and no others.
func (w *world) asOperator() *rest.Config {
	w.t.Helper()
	user := "system:serviceaccount:" + w.hcp.Namespace + ":control-plane-pki-operator"
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	raw, err := os.ReadFile(filepath.Join("..", "controlplane", "pkioperator", "assets", "role.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	role := &rbacv1.Role{}
	if err := yaml.UnmarshalStrict(raw, role); err != nil {
		w.t.Fatal(err)
	}
	role.Namespace = w.hcp.Namespace
	w.create(role)
	w.create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: role.Name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}})
	for name, rules := range certsigner.ClusterRights(w.hcp.Namespace) {
		w.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
		w.create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}})
	}
	cfg := rest.CopyConfig(w.env.Config)
	cfg.Impersonate.UserName = user
	return cfg
}

func TestProcess(t *testing.T) {
	t.Run("When the whole process runs with its own rights it should sign and revoke", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		mgr, err := newManager(w.asOperator(), Options{
			Namespace: w.hcp.Namespace, HostedControlPlane: w.hcp.Name, Day: wholeDay, MetricsAddr: "0", HealthAddr: "0", LeaderElect: true,
		}, config{clock: clock.RealClock{}, keys: pki.NewKey, rand: rand.Reader}, w)
		g.Expect(err).NotTo(HaveOccurred())
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		t.Cleanup(func() { stop(); <-ended })

		csr := w.csr("jane", x509.CertificateRequest{Subject: pkix.Name{CommonName: signers[0].prefix + "jane"}})
		w.create(&certificatesv1alpha1.CertificateSigningRequestApproval{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: csr.Name}})
		g.Eventually(func() []byte {
			if err := w.c.Get(t.Context(), client.ObjectKeyFromObject(csr), csr); err != nil {
				t.Fatal(err)
			}
			return csr.Status.Certificate
		}).WithTimeout(30*time.Second).WithPolling(50*time.Millisecond).ShouldNot(BeEmpty(), "it must be signed by events alone")
		before := w.authority()
		w.revocation("leaked")
		g.Eventually(func() bool {
			w.merge()
			return conditions.IsTrue(w.request("leaked").Status.Conditions, certificatesv1alpha1.PreviousCertificatesRevokedType)
		}).WithTimeout(90 * time.Second).WithPolling(200 * time.Millisecond).Should(BeTrue())
		w.revoked(t, "leaked", before)
	})
}
