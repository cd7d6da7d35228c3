package etcdbackup

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

// scene is a control plane on a real API server; the test plays the controllers of Jobs and StatefulSets.
type scene struct {
	*testing.T
	c        client.WithWatch
	ns, ours string
	r        *Reconciler
	hc       *hyperv1.HostedCluster
	hcp      *hyperv1.HostedControlPlane
}

func newScene(t *testing.T) *scene {
	t.Helper()
	g := NewWithT(t)
	env := testenv.Start(t)
	crds, err := config.CRDs(config.TechPreviewSet)
	g.Expect(err).NotTo(HaveOccurred())
	env.Install(t, crds...)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hyperv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	s := &scene{T: t, c: env.Client(t, scheme), ours: env.Namespace(t)}
	clusters := env.Namespace(t)
	s.hc = testenv.HostedCluster(clusters, "demo")
	g.Expect(s.c.Create(t.Context(), s.hc)).To(Succeed())
	s.ns = clusters + "-demo"
	g.Expect(s.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}})).To(Succeed())
	spec := s.hc.Spec
	s.hcp = &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: clusters + "/demo"}},
		Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: "registry.invalid/release:1", PullSecret: spec.PullSecret, Platform: spec.Platform, Networking: spec.Networking, Services: spec.Services,
			IssuerURL: "https://kubernetes.default.svc", InfraID: "demo", ControllerAvailabilityPolicy: hyperv1.SingleReplica,
			Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}},
	}
	g.Expect(s.c.Create(t.Context(), s.hcp)).To(Succeed())
	labels := map[string]string{"app": "etcd"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "etcd"}, Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: "x"}}}}}}
	g.Expect(s.c.Create(t.Context(), set)).To(Succeed())
	set.Status.Replicas, set.Status.ReadyReplicas = 1, 1
	g.Expect(s.c.Status().Update(t.Context(), set)).To(Succeed())
	g.Expect(s.c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ours, Name: "bucket"}, Data: map[string][]byte{"credentials": []byte("[default]\n")}})).To(Succeed())
	s.r = s.reconciler(s.c)
	return s
}

func (s *scene) reconciler(c client.Client) *Reconciler {
	return &Reconciler{Client: c, Clock: testclock.NewFakePassiveClock(time.Now()), Namespace: s.ours, Image: "registry.invalid/operator:1", UserID: userID, Keep: 2}
}

func (s *scene) create(name string) *hyperv1.HCPEtcdBackup {
	b := newBackup(name)
	b.Namespace, b.UID = s.ns, ""
	if err := s.c.Create(s.Context(), b); err != nil {
		s.Fatal(err)
	}
	return b
}

func (s *scene) pass(b *hyperv1.HCPEtcdBackup) ctrl.Result {
	s.Helper()
	result, err := s.r.Reconcile(s.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	if err != nil {
		s.Fatal(err)
	}
	if err := s.c.Get(s.Context(), client.ObjectKeyFromObject(b), b); client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	return result
}

func (s *scene) jobs() []batchv1.Job {
	list := &batchv1.JobList{}
	if err := s.c.List(s.Context(), list, client.InNamespace(s.ours)); err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// end plays the controller of Jobs and the kubelet, who notes what the container said.
func (s *scene) end(kind batchv1.JobConditionType, said string) {
	g := NewWithT(s.T)
	for _, j := range s.jobs() {
		if done, _ := ending(&j); done != "" {
			continue
		}
		now := metav1.Now()
		j.Status.StartTime = &now
		if kind == batchv1.JobComplete {
			j.Status.CompletionTime, j.Status.Succeeded = &now, 1
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuccessCriteriaMet, Status: "True"}, {Type: kind, Status: "True"}}
		} else {
			j.Status.Failed = 1
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: "True", Message: "it broke"}, {Type: kind, Status: "True", Message: "it broke"}}
		}
		g.Expect(s.c.Status().Update(s.Context(), &j)).To(Succeed())
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ours, Name: j.Name, Labels: map[string]string{batchv1.JobNameLabel: j.Name}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "upload", Image: "x"}}}}
		g.Expect(s.c.Create(s.Context(), pod)).To(Succeed())
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "upload", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: said, ExitCode: j.Status.Failed}}}}
		g.Expect(s.c.Status().Update(s.Context(), pod)).To(Succeed())
	}
}

// open lists what is there for Jobs in the namespace of the control plane.
func (s *scene) open() (n int) {
	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &networkingv1.NetworkPolicyList{}} {
		if err := s.c.List(s.Context(), list, client.InNamespace(s.ns)); err != nil {
			s.Fatal(err)
		}
		switch l := list.(type) {
		case *rbacv1.RoleList:
			n += len(l.Items)
		case *rbacv1.RoleBindingList:
			n += len(l.Items)
		case *networkingv1.NetworkPolicyList:
			n += len(l.Items)
		}
	}
	return n
}

func TestLife(t *testing.T) {
	g, s := NewWithT(t), newScene(t)
	// Times of creation have seconds. Of those that are as old the name decides, so these sort in the order in which they are made.
	first := s.create("b1")
	s.pass(first)
	g.Expect(completed(first).Reason).To(Equal(hyperv1.BackupInProgressReason))
	g.Expect(s.jobs()).To(HaveLen(1))
	g.Expect(s.open()).To(Equal(3))

	testenv.ExpectQuiet(t, s.c, func(c client.WithWatch) error {
		_, err := s.reconciler(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(first)})
		return err
	})

	second := s.create("b2")
	s.pass(second)
	g.Expect(completed(second).Reason).To(Equal(hyperv1.BackupRejectedReason), "When another runs it should be rejected")
	s.pass(second)
	g.Expect(s.open()).To(Equal(3), "When one is rejected what the other needs should stay")

	s.end(batchv1.JobComplete, "s3://backups/demo/1.db")
	s.pass(first)
	g.Expect(completed(first).Status).To(Equal(metav1.ConditionTrue))
	g.Expect(first.Status.SnapshotURL).To(Equal("s3://backups/demo/1.db"))
	g.Expect(s.c.Get(t.Context(), client.ObjectKeyFromObject(s.hc), s.hc)).To(Succeed())
	g.Expect(s.hc.Status.LastSuccessfulEtcdBackupURL).To(Equal("s3://backups/demo/1.db"))
	g.Expect(s.c.Get(t.Context(), client.ObjectKeyFromObject(s.hcp), s.hcp)).To(Succeed())
	g.Expect(conditions.IsTrue(s.hcp.Status.Conditions, hyperv1.EtcdBackupSucceeded)).To(BeTrue())
	s.pass(first)
	g.Expect(s.open()).To(BeZero(), "When it has ended the way to etcd should be closed")

	third := s.create("b3")
	s.pass(third)
	s.end(batchv1.JobFailed, "")
	s.pass(third)
	g.Expect(completed(third).Message).To(Equal("Backup Job failed: it broke"))
	s.pass(third)
	g.Expect(s.open()).To(BeZero())

	for _, name := range []string{"b4", "b5"} {
		b := s.create(name)
		s.pass(b)
		s.end(batchv1.JobComplete, "s3://backups/demo/2.db")
		s.pass(b)
		s.pass(b)
	}
	left := &hyperv1.HCPEtcdBackupList{}
	g.Expect(s.c.List(t.Context(), left, client.InNamespace(s.ns))).To(Succeed())
	var kept []string
	for _, b := range left.Items {
		kept = append(kept, b.Name)
	}
	g.Expect(kept).To(ConsistOf("b2", "b3", "b4", "b5"), "When there are more than are kept the oldest successful one should go")
}

func TestFailedJob(t *testing.T) {
	g, s := NewWithT(t), newScene(t)
	b := s.create("one")
	s.pass(b)
	s.end(batchv1.JobFailed, "Error: writing s3://backups/demo/1.db: KMS.NotFoundException: none (correct spec.storage.s3.kmsKeyARN)\n")
	s.pass(b)
	const why = "Backup Job failed: upload: writing s3://backups/demo/1.db: KMS.NotFoundException: none (correct spec.storage.s3.kmsKeyARN)"
	g.Expect(completed(b).Message).To(Equal(why), "When the Job failed it should say why in the words of its container")
	g.Expect(s.c.Get(t.Context(), client.ObjectKeyFromObject(s.hcp), s.hcp)).To(Succeed())
	g.Expect(conditions.Get(s.hcp.Status.Conditions, hyperv1.EtcdBackupSucceeded).Message).To(ContainSubstring(why))
}

func TestVanishedPod(t *testing.T) {
	g, s := NewWithT(t), newScene(t)
	b := s.create("one")
	s.pass(b)
	s.end(batchv1.JobComplete, "s3://backups/demo/1.db")
	g.Expect(s.c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(s.ours), client.GracePeriodSeconds(0))).To(Succeed())
	s.pass(b)
	g.Expect(completed(b).Reason).To(Equal(hyperv1.BackupFailedReason), "When the Job has completed and its pod has gone it should not count as a backup")
	g.Expect(completed(b).Message).To(ContainSubstring("its result is unknown: look for the snapshot in the storage"))
	g.Expect(b.Status.SnapshotURL).To(BeEmpty())
	g.Expect(s.c.Get(t.Context(), client.ObjectKeyFromObject(s.hcp), s.hcp)).To(Succeed())
	g.Expect(conditions.IsTrue(s.hcp.Status.Conditions, hyperv1.EtcdBackupSucceeded)).To(BeFalse())
}

// encryptWith writes the configuration that kube-apiserver has.
func (s *scene) encryptWith(keys ...byte) {
	g := NewWithT(s.T)
	var list []encryption.Key
	for _, key := range keys {
		list = append(list, encryption.NewKey(bytes.Repeat([]byte{key}, encryption.KeySize)))
	}
	raw, err := encryption.Config(list)
	g.Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: encryption.ConfigSecret}}
	_, err = controllerutil.CreateOrUpdate(s.Context(), s.c, secret, func() error {
		secret.Data = map[string][]byte{encryption.ConfigKey: raw}
		return nil
	})
	g.Expect(err).NotTo(HaveOccurred())
}

func TestChangedKeys(t *testing.T) {
	s := newScene(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ours, Name: "bucket"}}
	NewWithT(t).Expect(s.c.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"`+backups.EncryptionKey+`":"`+strings.Repeat("k", 32)+`"}}`)))).To(Succeed())
	for i, tc := range []struct {
		name          string
		before, after []byte
		reason        string
	}{
		{"When the first key comes while a backup is made it should have failed", nil, []byte{1}, hyperv1.BackupFailedReason},
		{"When a key comes while a backup is made it should have failed", []byte{1}, []byte{1, 2}, hyperv1.BackupFailedReason},
		{"When another key comes to encrypt it should have succeeded, as it holds both", []byte{1, 2}, []byte{2, 1}, hyperv1.BackupSucceededReason},
		{"When a change of keys hangs it should have succeeded, as it holds both", []byte{2, 1}, []byte{2, 1}, hyperv1.BackupSucceededReason},
		{"When a key goes while a backup is made it should have succeeded, as it holds both", []byte{2, 1}, []byte{2}, hyperv1.BackupSucceededReason},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			if len(tc.before) > 0 {
				s.encryptWith(tc.before...)
			}
			b := s.create(fmt.Sprint("b", i))
			s.pass(b)
			g.Expect(completed(b).Reason).To(Equal(hyperv1.BackupInProgressReason), completed(b).Message)
			s.encryptWith(tc.after...)
			s.end(batchv1.JobComplete, "s3://backups/demo/1.db.enc")
			s.pass(b)
			g.Expect(completed(b).Reason).To(Equal(tc.reason), completed(b).Message)
			if tc.reason == hyperv1.BackupFailedReason {
				g.Expect(completed(b).Message).To(ContainSubstring("changed while the backup was made"))
				g.Expect(b.Status.SnapshotURL).To(BeEmpty())
			}
			s.pass(b)
		})
	}
}

func TestVanishedJob(t *testing.T) {
	g, s := NewWithT(t), newScene(t)
	b := s.create("one")
	s.pass(b)
	for _, j := range s.jobs() {
		g.Expect(s.c.Delete(t.Context(), &j, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	}
	s.pass(b)
	g.Expect(completed(b).Reason).To(Equal(hyperv1.BackupFailedReason), "When the Job has gone it should not start a second one")
	g.Expect(s.jobs()).To(BeEmpty())
}

func TestDeletedWhileItRuns(t *testing.T) {
	g, s := NewWithT(t), newScene(t)
	deleted, other := s.create("deleted"), s.create("other")
	s.pass(deleted)
	g.Expect(s.open()).To(Equal(3))
	g.Expect(s.c.Delete(t.Context(), deleted)).To(Succeed())
	s.pass(deleted)
	g.Expect(s.open()).To(Equal(3), "When another backup is unfinished what it may need should stay")
	s.pass(other)
	g.Expect(completed(other).Reason).To(Equal(hyperv1.BackupRejectedReason))
	s.pass(other)
	g.Expect(s.open()).To(Equal(3), "When the other has ended and the Job runs what that needs should stay")
	g.Expect(s.c.Delete(t.Context(), other)).To(Succeed())
	g.Expect(s.pass(other).RequeueAfter).To(Equal(poll))
	g.Expect(s.open()).To(Equal(3), "When the Job of a backup that was deleted runs what it needs should stay")
	s.end(batchv1.JobComplete, "s3://backups/demo/1.db")
	g.Expect(s.pass(deleted).RequeueAfter).To(BeZero())
	g.Expect(s.open()).To(BeZero(), "When neither a backup nor a Job is left the way to etcd should be closed")
	testenv.ExpectQuiet(t, s.c, func(c client.WithWatch) error {
		_, err := s.reconciler(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(deleted)})
		return err
	})
}

func TestCrash(t *testing.T) {
	testenv.CrashAtEveryWrite(t, 1, func(t testing.TB) testenv.CrashCase {
		s := newScene(t.(*testing.T))
		b := s.create("one")
		return testenv.CrashCase{
			Client: s.c,
			Run: func(c client.WithWatch) error {
				for range 3 {
					if _, err := s.reconciler(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}); err != nil {
						return err
					}
				}
				return nil
			},
			Check: func(t testing.TB) {
				if n := len(s.jobs()); n != 1 {
					t.Errorf("there should be one Job, not %d", n)
				}
			},
		}
	})
}
