package etcdrecovery

import (
	"context"
	"io"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"hcp.internal/platform/internal/encryption"
)

func TestForgetRewriting(t *testing.T) {
	for name, begun := range map[string]string{
		"When keys of encryption change Secrets should be written again from the first, which is noted before the data is exchanged": "",
		"When members ran before others had lost their data Secrets should be written again from the first, too":                     `{"from":"etcd-0","replicas":1,"snapshot":"s3://b/1.db.enc","apiServers":2,"paused":true,"alone":true,"again":["etcd"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newStage(t, 1)
			keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: encryption.ConfigSecret}, Data: map[string][]byte{encryption.ConfigKey: []byte("kind: EncryptionConfiguration")}}
			g.Expect(s.c.Create(t.Context(), keys)).To(Succeed())
			before, err := encryption.ReadConfig(t.Context(), s.c, s.ns)
			g.Expect(err).NotTo(HaveOccurred())
			if begun != "" {
				s.holds("etcd-0")
				s.note(begun)
			}
			at := encryption.LiveConfig{Version: "none was started"}
			c := interceptor.NewClient(s.c, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if o.GetName() == "etcd-alone" {
					at, _ = encryption.ReadConfig(ctx, s.c, s.ns)
				}
				return c.Create(ctx, o, opts...)
			}})
			g.Expect(s.quorum(c, io.Discard).Run(t.Context())).To(Succeed())
			g.Expect(at.Hash).To(Equal(before.Hash), "keys should stay")
			g.Expect(at.Version).NotTo(Equal(before.Version), "progress of the rewriting is of a version")
			s.expect(t, "snapshot")
		})
	}
}
