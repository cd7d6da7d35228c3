package sources

import (
	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestSigningKey(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	der, err := x509.MarshalPKCS8PrivateKey(key)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	t.Run("When a key is rotated it should accept the old one as well", func(t *testing.T) {
		g := NewWithT(t)
		pair, err := signingKeyPair(map[string][]byte{"key": private})
		g.Expect(err).NotTo(HaveOccurred())
		rotated, err := signingKeyPair(map[string][]byte{"key": private, "old-key.pub": pair["service-account.pub"]})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(strings.Count(string(rotated["service-account.pub"]), "BEGIN")).To(Equal(2))
		g.Expect(rotated["service-account.key"]).To(Equal(private))
	})
	t.Run("When the old key is garbage it should say so", func(t *testing.T) {
		_, err := signingKeyPair(map[string][]byte{"key": private, "old-key.pub": []byte("x")})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`key "old-key.pub" does not hold public keys`)))
	})
}

func TestStaleCopies(t *testing.T) {
	t.Run("When the control plane may still read with a key its copy should stay", func(t *testing.T) {
		g := NewWithT(t)
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Status.SecretEncryption.ActiveKey.AESCBC = &hyperv1.AESCBCKeyStatus{Secret: hyperv1.EncryptionSecretReference{Name: "old-key"}, DataHash: "x"}
		stale, err := Stale(&hyperv1.HostedClusterSpec{}, hcp, []client.Object{
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "old-key"}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "older-key"}},
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(stale).To(HaveLen(1))
		g.Expect(stale[0].GetName()).To(Equal("older-key"))
	})
}
