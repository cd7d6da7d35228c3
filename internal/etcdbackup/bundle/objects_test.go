package bundle

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestSealObjects(t *testing.T) {
	raw := make([]byte, 1<<20)
	_, _ = rand.Read(raw) // never fails
	noise := base64.StdEncoding.EncodeToString(raw)
	t.Run("When they can't be unpacked again they should be refused, however small they are when packed", func(t *testing.T) {
		o := Objects{HostedCluster: &hyperv1.HostedCluster{}, ConfigMaps: []corev1.ConfigMap{{Data: map[string]string{"x": strings.Repeat("x", maxPlainObjects)}}}}
		_, err := o.Seal(key(1), rand.Reader)
		NewWithT(t).Expect(err).To(MatchError(ErrTooLarge))
	})
	t.Run("When machines are too much for a Secret the rest should be sealed without them", func(t *testing.T) {
		g := NewWithT(t)
		o := Objects{HostedCluster: &hyperv1.HostedCluster{}, Machines: []unstructured.Unstructured{{Object: map[string]any{"kind": "Machine", "apiVersion": "v1", "noise": noise}}}}
		_, err := o.Seal(key(1), rand.Reader)
		g.Expect(err).To(MatchError(ErrTooLarge))
		raw, err := o.WithoutMachines().Seal(key(1), rand.Reader)
		g.Expect(err).NotTo(HaveOccurred())
		packed, err := open(raw, key(1))
		g.Expect(err).NotTo(HaveOccurred())
		got, err := DecodeObjects(packed)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Machines).To(BeEmpty())
		g.Expect(got.NoMachines).To(BeTrue())
	})
}

// TestVerifyObjects: what a restore can't use is no backup.
func TestVerifyObjects(t *testing.T) {
	large, err := Pack(bytes.Repeat([]byte("x"), maxPlainObjects+1))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, tc := range map[string]struct {
		packed []byte
		want   string
	}{
		"When objects unpack to too much it should say so":     {large, "they have more than 16777216 bytes"},
		"When objects can't be unpacked it should say so":      {[]byte("nonsense"), "unpacking the objects"},
		"When objects have no HostedCluster it should say so":  {packed(t, `{}`), "have no HostedCluster"},
		"When objects are what a restore uses it should be so": {packed(t, `{"hostedCluster":{}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), backup(t)
			objects := sealed(t, key(1), tc.packed)
			m := manifest()
			m.Snapshot = fileOf("1.db.enc", f["p/1.db.enc"])
			o := fileOf("1.objects", objects)
			m.Objects = &o
			raw, err := m.Encode(key(1))
			g.Expect(err).NotTo(HaveOccurred())
			f["p/1.json"], f["p/1.objects"] = raw, objects
			_, _, err = Verify(t.Context(), f, "p/1.db.enc", key(1))
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func packed(t *testing.T, plain string) []byte {
	t.Helper()
	raw, err := Pack([]byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
