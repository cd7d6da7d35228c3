package reencryption

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

// check asserts the end of a rotation to b.
func (w *world) check(t testing.TB) {
	t.Helper()
	g := NewWithT(t)
	status := w.read(t).Status.SecretEncryption
	g.Expect(w.keys(t)).To(Equal("b"))
	g.Expect(w.condition(t)).To(Equal("True ReEncryptionCompleted"))
	g.Expect(status.ActiveKey.AESCBC.Secret.Name).To(Equal("key-b"))
	g.Expect(status.TargetKey.AESCBC).To(BeNil())
	g.Expect(status.History).To(HaveLen(2), "the first key, and b")
	g.Expect(status.History[0].State).To(Equal(hyperv1.EncryptionMigrationCompleted))
	g.Expect(status.History[0].CompletionTime.Time).To(BeTemporally("==", noon))
	for i := range 5 {
		g.Expect(w.written).To(HaveKeyWithValue(fmt.Sprintf("%s/data-%d", w.hcp.Namespace, i), "b"))
	}
	err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: progressName}, &corev1.ConfigMap{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the progress should be gone: %v", err)
}

func TestReconcile(t *testing.T) {
	t.Run("When the key changes it should go through every state, write every Secret again, and be quiet", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		_, err := w.reconcile(t, w.client)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.condition(t)).To(Equal("False ReEncryptionWaitingForKASConvergence"), "before there is a configuration")
		g.Expect(w.settle(t, w.client)).To(Succeed())

		w.activate(t, "b")
		type seen struct{ keys, condition, state string }
		var steps []seen
		for _, rollout := range []bool{true, false, true, false, true, true, true, true} {
			w.operate(t, rollout)
			_, err := w.reconcile(t, w.client)
			g.Expect(err).NotTo(HaveOccurred())
			s := seen{w.keys(t), w.condition(t), string(w.read(t).Status.SecretEncryption.History[0].State)}
			if len(steps) == 0 || steps[len(steps)-1] != s {
				steps = append(steps, s)
			}
		}
		g.Expect(steps).To(HaveExactElements(
			seen{"a", "False ReadOnlyRolloutInProgress", "ReadOnlyDeploy"},
			seen{"ab", "False ReadOnlyRolloutInProgress", "ReadOnlyDeploy"},
			seen{"ba", "False WritePromotionInProgress", "WritePromote"},
			seen{"ba", "False ReEncryptionInProgress", "Migrating"},
			seen{"ba", "True ReEncryptionCompleted", "Completed"},
		))
		g.Expect(w.settle(t, w.client)).To(Succeed())
		w.check(t)
		testenv.ExpectQuiet(t, w.client, func(c client.WithWatch) error {
			_, err := w.reconcile(t, c)
			return err
		})
	})
	t.Run("When a plugin is to hold the key, and later not any more, it should write every Secret again each time", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(t, w.client)).To(Succeed())
		for _, step := range []struct{ plugin, keys string }{{encryption.PluginLocal, "A"}, {"", "a"}} {
			hcp := w.read(t)
			hcp.Annotations = map[string]string{encryption.PluginAnnotation: step.plugin}
			g.Expect(w.client.Update(t.Context(), hcp)).To(Succeed())
			_, err := w.reconcile(t, w.client)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(w.condition(t)).To(Equal("False ReadOnlyRolloutInProgress"))
			g.Expect(w.settle(t, w.client)).To(Succeed())
			g.Expect(w.keys(t)).To(Equal(step.keys))
			for i := range 5 {
				g.Expect(w.written).To(HaveKeyWithValue(fmt.Sprintf("%s/data-%d", w.hcp.Namespace, i), step.keys))
			}
		}
	})
	t.Run("When the key is a cloud's and changes it should write Secrets and ConfigMaps again", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: "settings"}})
		for _, letter := range []string{"1", "2"} {
			hcp := w.read(t)
			hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.AWS, AWS: &hyperv1.AWSKMSSpec{
				Region: "eu-west-1", ActiveKey: *cloudRef(letter).AWS, Auth: hyperv1.AWSKMSAuthSpec{AWSKMSRoleARN: "arn:aws:iam::123456789012:role/kms"}}}}
			g.Expect(w.client.Update(t.Context(), hcp)).To(Succeed())
			for range 60 {
				w.operate(t, true)
				_, err := w.reconcile(t, w.client)
				g.Expect(err).NotTo(HaveOccurred())
				if w.condition(t) == "True ReEncryptionCompleted" && w.keys(t) == letter {
					break
				}
			}
			g.Expect(w.keys(t)).To(Equal(letter))
			g.Expect(w.condition(t)).To(Equal("True ReEncryptionCompleted"))
			g.Expect(w.written).To(HaveKeyWithValue(w.hcp.Namespace+"/settings", letter))
			g.Expect(w.written).To(HaveKeyWithValue(w.hcp.Namespace+"/data-0", letter))
			g.Expect(w.read(t).Status.SecretEncryption.ActiveKey).To(Equal(cloudRef(letter)))
		}
		g.Expect(w.read(t).Status.SecretEncryption.History).To(HaveLen(2))
	})
	t.Run("When the next key is none it should say so, keep the present one, and heal", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(t, w.client)).To(Succeed())
		g.Expect(w.client.Update(t.Context(), w.secret("key-b", []byte("short")))).To(Succeed())
		w.activate(t, "b")
		_, err := w.reconcile(t, w.client)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.condition(t)).To(Equal("False ReEncryptionFailed"))
		g.Expect(w.keys(t)).To(Equal("a"))
		g.Expect(w.client.Update(t.Context(), w.secret("key-b", []byte(strings.Repeat("b", encryption.KeySize))))).To(Succeed())
		g.Expect(w.settle(t, w.client)).To(Succeed())
		g.Expect(w.keys(t)).To(Equal("b"))
	})
	t.Run("When encryption is switched on later it should first be read everywhere, then write what was there again", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.deploy(t, "", true) // servers without a configuration
		var seen []string
		for range 8 {
			w.operate(t, false)
			for _, rollout := range []bool{false, true} {
				if rollout {
					w.rollOut(t)
				}
				_, err := w.reconcile(t, w.client)
				g.Expect(err).NotTo(HaveOccurred())
				if s := w.keys(t) + " " + w.condition(t); len(seen) == 0 || seen[len(seen)-1] != s {
					seen = append(seen, s)
				}
			}
		}
		g.Expect(seen).To(HaveExactElements(
			".a False ReadOnlyRolloutInProgress",
			"a False WritePromotionInProgress",
			"a False ReEncryptionInProgress",
			"a True ReEncryptionCompleted",
		))
		for i := range 5 {
			g.Expect(w.written).To(HaveKeyWithValue(fmt.Sprintf("%s/data-%d", w.hcp.Namespace, i), "a"))
		}
		status := w.read(t).Status.SecretEncryption
		g.Expect(status.History).To(HaveLen(1))
		g.Expect(status.History[0].From.Fingerprint).To(Equal("identity"))
		g.Expect(status.ActiveKey.AESCBC.Secret.Name).To(Equal("key-a"))
	})
	t.Run("When the spec changes again before the target writes it should give that up and take the next", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(t, w.client)).To(Succeed())
		w.activate(t, "b")
		_, err := w.reconcile(t, w.client)
		g.Expect(err).NotTo(HaveOccurred())
		w.operate(t, false)
		g.Expect(w.keys(t)).To(Equal("ab"))
		w.activate(t, "c")
		_, err = w.reconcile(t, w.client)
		g.Expect(err).NotTo(HaveOccurred())
		status := w.read(t).Status.SecretEncryption
		g.Expect(status.TargetKey.AESCBC.Secret.Name).To(Equal("key-b"), "until nobody can have it write any more")
		g.Expect(status.History[0].State).To(Equal(hyperv1.EncryptionMigrationInterrupted))
		g.Expect(w.settle(t, w.client)).To(Succeed())
		g.Expect(w.keys(t)).To(Equal("c"))
		var changes []string
		for _, h := range w.read(t).Status.SecretEncryption.History {
			changes = append(changes, string(h.State))
		}
		g.Expect(changes).To(Equal([]string{"Completed", "Interrupted", "Completed"}))
		g.Expect(w.written).NotTo(ContainElement("b"))
	})
	t.Run("When a cloud's key can't be used and the spec goes back it should go and never have written", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		name := func(letter string) {
			hcp := w.read(t)
			hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.AWS, AWS: &hyperv1.AWSKMSSpec{
				Region: "eu-west-1", ActiveKey: *cloudRef(letter).AWS, Auth: hyperv1.AWSKMSAuthSpec{AWSKMSRoleARN: "arn:aws:iam::123456789012:role/kms"}}}}
			g.Expect(w.client.Update(t.Context(), hcp)).To(Succeed())
		}
		both := func(rollout bool) {
			w.operate(t, rollout)
			_, err := w.reconcile(t, w.client)
			g.Expect(err).NotTo(HaveOccurred())
		}
		name("1")
		for range 20 {
			both(true)
		}
		g.Expect(w.condition(t) + " " + w.keys(t)).To(Equal("True ReEncryptionCompleted 1"))
		name("2")
		for range 5 {
			both(false) // no server with this key gets ready
		}
		g.Expect(w.condition(t) + " " + w.keys(t)).To(Equal("False ReadOnlyRolloutInProgress 12"))
		name("1")
		for range 5 {
			both(w.keys(t) == "1")
		}
		g.Expect(w.condition(t) + " " + w.keys(t)).To(Equal("True ReEncryptionCompleted 1"))
		status := w.read(t).Status.SecretEncryption
		g.Expect(status.ActiveKey).To(Equal(cloudRef("1")))
		g.Expect(encryption.HashOf(status.TargetKey, "")).To(BeEmpty())
		g.Expect(status.History[0].State).To(Equal(hyperv1.EncryptionMigrationInterrupted))
		g.Expect(w.written).NotTo(ContainElement("2"))
	})
	t.Run("When the spec changes again while the target writes it should finish that first", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(t, w.client)).To(Succeed())
		w.activate(t, "b")
		for range 10 {
			_, err := w.reconcile(t, w.client)
			g.Expect(err).NotTo(HaveOccurred())
			if w.operate(t, true); w.keys(t) == "ba" {
				break
			}
		}
		w.activate(t, "c")
		_, err := w.reconcile(t, w.client)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.read(t).Status.SecretEncryption.TargetKey.AESCBC.Secret.Name).To(Equal("key-b"))
		g.Expect(w.settle(t, w.client)).To(Succeed())
		g.Expect(w.keys(t)).To(Equal("c"))
		var changes []string
		for _, h := range w.read(t).Status.SecretEncryption.History {
			changes = append(changes, string(h.State))
		}
		g.Expect(changes).To(Equal([]string{"Completed", "Completed", "Completed"}))
	})
	t.Run("When the bytes of the target are lost before any server has them it should take the next", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(t, w.client)).To(Succeed())
		w.activate(t, "b")
		_, err := w.reconcile(t, w.client)
		g.Expect(err).NotTo(HaveOccurred())
		secret := w.secret("key-b", []byte(strings.Repeat("d", encryption.KeySize)))
		g.Expect(w.client.Update(t.Context(), secret)).To(Succeed())
		_, err = w.reconcile(t, w.client)
		g.Expect(err).NotTo(HaveOccurred())
		status := w.read(t).Status.SecretEncryption
		g.Expect(status.History[1].State).To(Equal(hyperv1.EncryptionMigrationInterrupted))
		g.Expect(w.settle(t, w.client)).To(Succeed())
		g.Expect(w.keys(t)).To(Equal("d"))
	})
	t.Run("When a webhook forbids some Secrets it should write the others, say so, and heal", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(t, w.client)).To(Succeed())
		w.refuse = func(name string) error {
			switch name {
			case "data-1":
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, name, nil)
			case "data-2": // a webhook that pretends
				return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, name, nil)
			}
			return nil
		}
		w.activate(t, "b")
		g.Expect(w.settle(t, w.client)).NotTo(Succeed())
		g.Expect(w.keys(t)).To(Equal("ba"))
		g.Eventually(func() string {
			_, err := w.reconcile(t, w.client)
			g.Expect(err).NotTo(HaveOccurred())
			return w.condition(t)
		}).Should(Equal("False ReEncryptionFailed"))
		w.refuse = nil
		g.Expect(w.settle(t, w.client)).To(Succeed())
		w.check(t)
	})
	t.Run("When a webhook doesn't answer for a Secret it should write the others, say so, and heal", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(t, w.client)).To(Succeed())
		w.silent, w.patience = "data-1", 2*time.Second
		w.activate(t, "b")
		for range 30 {
			w.operate(t, true)
			_, err := w.reconcile(t, w.client)
			g.Expect(err).NotTo(HaveOccurred())
			if w.condition(t) == "False ReEncryptionFailed" {
				break
			}
		}
		g.Expect(w.condition(t)).To(Equal("False ReEncryptionFailed"))
		g.Expect(conditions.Get(w.read(t).Status.Conditions, hyperv1.EtcdDataEncryptionUpToDate).Message).To(ContainSubstring("look for webhooks in the hosted cluster"))
		g.Expect(w.written[w.hcp.Namespace+"/data-4"]).To(Equal("b"), "those behind it were written, too")
		w.silent = ""
		g.Expect(w.settle(t, w.client)).To(Succeed())
		w.check(t)
	})
	t.Run("When a Secret goes or changes meanwhile it should not mind", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(t, w.client)).To(Succeed())
		w.refuse = func(name string) error {
			switch name {
			case "data-0":
				return w.client.Delete(t.Context(), w.secret(name, nil))
			case "data-1":
				return w.client.Patch(t.Context(), w.secret(name, nil), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
			}
			return nil
		}
		w.activate(t, "b")
		g.Expect(w.settle(t, w.client)).To(Succeed())
		live := &corev1.Secret{}
		g.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: "data-1"}, live)).To(Succeed())
		g.Expect(live.Labels).To(Equal(map[string]string{"a": "b"}))
		g.Expect(apierrors.IsNotFound(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: "data-0"}, live))).To(BeTrue())
	})
	t.Run("When a pod of before is still going away it should wait", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(t, w.client)).To(Succeed())
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: "old", Labels: map[string]string{"app": names.KubeAPIServer}, Finalizers: []string{"test.example/stays"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/kube"}}},
		}
		w.create(t, pod)
		g.Expect(w.client.Delete(t.Context(), pod)).To(Succeed())
		w.activate(t, "b")
		g.Expect(w.settle(t, w.client)).NotTo(Succeed())
		g.Expect(w.keys(t)).To(Equal("ab"))
	})
	t.Run("When the position in the list is not known any more it should begin again", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(t, w.client)).To(Succeed())
		w.activate(t, "b")
		progressed := &corev1.ConfigMap{}
		for range 20 {
			w.operate(t, true)
			_, err := w.reconcile(t, w.client)
			g.Expect(err).NotTo(HaveOccurred())
			if w.client.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: progressName}, progressed) == nil {
				break
			}
		}
		g.Expect(progressed.Data[continueKey]).NotTo(BeEmpty())
		progressed.Data[continueKey] = "nonsense"
		g.Expect(w.client.Update(t.Context(), progressed)).To(Succeed())
		w.written = map[string]string{}
		g.Expect(w.settle(t, w.client)).To(Succeed())
		w.check(t)
	})
}

func TestCrash(t *testing.T) {
	fresh := func(t testing.TB) testenv.CrashCase {
		w := newWorld(t)
		if err := w.settle(t, w.client); err != nil {
			t.Fatal(err)
		}
		w.activate(t, "b")
		return testenv.CrashCase{
			Client: w.client,
			Run:    func(c client.WithWatch) error { return w.settle(t, c) },
			Check:  w.check,
		}
	}
	testenv.CrashAtEveryWrite(t, 1, fresh)
	testenv.Storm(t, 2, fresh)
}
