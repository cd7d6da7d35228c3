package etcdbackup

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/kube/conditions"
)

// withKey gives the storage a key, and the cluster what is worth sealing.
func (s *scene) withKey() bundle.Key {
	g := NewWithT(s.T)
	key := bundle.Key(bytes.Repeat([]byte{7}, bundle.KeySize))
	secret := &corev1.Secret{}
	g.Expect(s.c.Get(s.Context(), client.ObjectKey{Namespace: s.ours, Name: "bucket"}, secret)).To(Succeed())
	secret.Data[backups.EncryptionKey] = key
	g.Expect(s.c.Update(s.Context(), secret)).To(Succeed())
	for _, o := range []*corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "root-ca"}, Data: map[string][]byte{"ca.key": []byte("hush-authority")}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "kas-secret-encryption-config"}, Data: map[string][]byte{"config.yaml": []byte("hush-keys")}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "leaf"}, Data: map[string][]byte{"tls.key": []byte("hush-leaf")}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: s.hc.Namespace, Name: "pull", Annotations: map[string]string{hyperv1.ReferencedResourceAnnotationPrefix + "demo": "true"}}, Data: map[string][]byte{"x": []byte("hush-pull")}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: s.hc.Namespace, Name: "others"}, Data: map[string][]byte{"x": []byte("hush-other")}},
	} {
		g.Expect(s.c.Create(s.Context(), o)).To(Succeed())
	}
	return key
}

func TestBundle(t *testing.T) {
	g, s := NewWithT(t), newScene(t)
	key := s.withKey()
	b := s.create("one")
	s.pass(b)
	payload := &corev1.Secret{}
	at := client.ObjectKey{Namespace: s.ours, Name: payloadName(b)}
	g.Expect(s.c.Get(t.Context(), at, payload)).To(Succeed())
	for _, content := range payload.Data {
		g.Expect(string(content)).NotTo(ContainSubstring("hush"), "When objects are handed to the Job they should be sealed")
	}
	g.Expect(payload.OwnerReferences).To(HaveLen(1), "When the backup is deleted it should go with its Job")
	m := bundle.Manifest{}
	g.Expect(json.Unmarshal(payload.Data[metaKey], &m)).To(Succeed())
	g.Expect(m.Cluster.Name).To(Equal("demo"))
	plain, sealed, err := bundle.Open(bytes.NewReader(payload.Data[objectsKey]), key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sealed).To(BeTrue())
	packed, err := io.ReadAll(plain)
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := bundle.DecodeObjects(packed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects.HostedCluster.Name).To(Equal("demo"))
	g.Expect(objects.Authorities).To(HaveLen(2), "leaves are made anew")
	g.Expect(objects.Secrets).To(HaveLen(1), "Secrets of others are not ours to save")
	g.Expect(s.jobs()[0].Spec.Template.Spec.Containers[0].Args).To(ContainElements("--encryption-key-file", "--objects", "--meta"))

	s.end(batchv1.JobComplete, "s3://backups/demo/1.db.enc\n"+`{"revision":9,"keys":3,"bytes":4096,"stored":5000,"key":"ab","objects":true,"verified":true}`)
	s.pass(b)
	g.Expect(b.Status.SnapshotURL).To(Equal("s3://backups/demo/1.db.enc"))
	g.Expect(b.Annotations).To(HaveKey(backups.SummaryAnnotation))
	v := conditions.Get(b.Status.Conditions, hyperv1.EtcdBackupVerified)
	g.Expect(v).NotTo(BeNil())
	g.Expect(v.Reason).To(Equal(hyperv1.BackupReadBackReason))
	g.Expect(v.Message).To(ContainSubstring("revision 9"))
	s.pass(b)
	g.Expect(apierrors.IsNotFound(s.c.Get(t.Context(), at, payload))).To(BeTrue(), "When the backup has ended what its Job was given should go")

	b.Annotations[backups.VerifyAnnotation] = "now"
	g.Expect(s.c.Update(t.Context(), b)).To(Succeed())
	s.pass(b)
	name := verificationName(b, "now")
	g.Expect(s.c.Get(t.Context(), client.ObjectKey{Namespace: s.ours, Name: name}, &batchv1.Job{})).To(Succeed())
	s.end(batchv1.JobFailed, "Error: the snapshot: 1.db.enc is damaged")
	s.pass(b)
	v = conditions.Get(b.Status.Conditions, hyperv1.EtcdBackupVerified)
	g.Expect(v.Reason).To(Equal(hyperv1.BackupUnreadableReason), "When it can't be read it should say so")
	g.Expect(v.Message).To(ContainSubstring("is damaged"))
	s.pass(b)
	g.Expect(b.Annotations).NotTo(HaveKey(backups.VerifyAnnotation))
}

func TestBadKey(t *testing.T) {
	t.Run("When the key is none the backup should fail and not show it", func(t *testing.T) {
		g := NewWithT(t)
		o := ready()
		o.secret.Data[backups.EncryptionKey] = []byte("hush")
		o.key, o.keyErr = keyOf(o.secret)
		p := planFor(o)
		g.Expect(p.start).To(BeFalse())
		g.Expect(p.condition.Message).To(ContainSubstring("key encryption-key: the encryption key must be 32 bytes"))
		g.Expect(p.condition.Message).NotTo(ContainSubstring("hush"))
	})
	t.Run("When a volume has no key it should be refused", func(t *testing.T) {
		o := ready()
		o.secret.Data[backups.VolumeKey] = []byte("claim")
		NewWithT(t).Expect(planFor(o).condition.Message).To(ContainSubstring("add key encryption-key"))
	})
	t.Run("When a volume is used the Job should mount it, and need no credentials", func(t *testing.T) {
		g := NewWithT(t)
		o := ready()
		o.secret.Data[backups.VolumeKey], o.key = []byte("claim\n"), bundle.Key(bytes.Repeat([]byte{1}, 32))
		j := newJob(o, world{namespace: "hypershift", image: "x"}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "etcd-backup-1"}})
		args := strings.Join(j.Spec.Template.Spec.Containers[0].Args, " ")
		g.Expect(args).To(ContainSubstring("--volume /var/lib/etcd-backups"))
		g.Expect(args).NotTo(ContainSubstring("--credentials-file"))
		var claims []string
		for _, v := range j.Spec.Template.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				claims = append(claims, v.PersistentVolumeClaim.ClaimName)
			}
		}
		g.Expect(claims).To(Equal([]string{"claim"}))
	})
}
