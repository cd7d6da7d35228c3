package etcdbackup

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

// noise is text of n bytes that can't be packed much.
func noise(n int) string {
	raw := make([]byte, n*3/4)
	_, _ = rand.Read(raw) // never fails
	return base64.StdEncoding.EncodeToString(raw)
}

// names has the HostedCluster name ConfigMaps of 700 KiB.
func (s *scene) names(n int) {
	for i := range n {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.hc.Namespace, Name: fmt.Sprint("large-", i), Annotations: map[string]string{hyperv1.ReferencedResourceAnnotationPrefix + "demo": "true"}},
			Data: map[string]string{"x": noise(700 << 10)}}
		if err := s.c.Create(s.Context(), cm); err != nil {
			s.Fatal(err)
		}
	}
}

// refused expects that a backup has ended without a Job, that everybody is told, and that nothing stays open.
func (s *scene) refused(b *hyperv1.HCPEtcdBackup, why string) {
	s.Helper()
	g := NewWithT(s.T)
	g.Expect(ended(b)).To(BeTrue(), "or its schedule waits for it")
	g.Expect(completed(b).Reason).To(Equal(hyperv1.BackupFailedReason))
	g.Expect(completed(b).Message).To(HavePrefix("the backup can't be started: "))
	g.Expect(completed(b).Message).To(ContainSubstring(why))
	g.Expect(s.c.Get(s.Context(), client.ObjectKeyFromObject(s.hcp), s.hcp)).To(Succeed())
	told := conditions.Get(s.hcp.Status.Conditions, hyperv1.EtcdBackupSucceeded)
	g.Expect(told).NotTo(BeNil())
	g.Expect(told.Message).To(ContainSubstring(why))
	s.pass(b)
	g.Expect(s.open()).To(BeZero())
	g.Expect(s.jobs()).To(BeEmpty())
	payload := client.ObjectKey{Namespace: s.ours, Name: payloadName(b)}
	g.Expect(apierrors.IsNotFound(s.c.Get(s.Context(), payload, &corev1.Secret{}))).To(BeTrue())
}

func TestUnstarted(t *testing.T) {
	t.Run("When the objects don't fit a backup should fail before anything is opened", func(t *testing.T) {
		g, s := NewWithT(t), newScene(t)
		s.withKey()
		s.names(3)
		b := s.create("one")
		s.pass(b)
		g.Expect(s.open()).To(BeZero())
		s.refused(b, "the objects of the cluster are too large for a backup: they have")
	})
	t.Run("When the Job is refused a backup should fail, and what was opened for it be closed", func(t *testing.T) {
		s := newScene(t)
		quota := true
		s.r = s.reconciler(interceptor.NewClient(s.c, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, job := o.(*batchv1.Job); job && quota {
				return apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, o.GetName(), fmt.Errorf("exceeded quota: few, requested: count/jobs.batch=1"))
			}
			return c.Create(ctx, o, opts...)
		}}))
		b := s.create("one")
		s.pass(b)
		s.refused(b, "exceeded quota: few")
		quota = false
		again := s.create("two")
		s.pass(again)
		NewWithT(t).Expect(completed(again).Reason).To(Equal(hyperv1.BackupInProgressReason), "When the quota has room again another should start")
	})
	t.Run("When the API server can't be reached it should try again and say nothing", func(t *testing.T) {
		g, s := NewWithT(t), newScene(t)
		s.r = s.reconciler(interceptor.NewClient(s.c, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, job := o.(*batchv1.Job); job {
				return apierrors.NewServiceUnavailable("busy")
			}
			return c.Create(ctx, o, opts...)
		}}))
		b := s.create("one")
		_, err := s.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		g.Expect(apierrors.IsServiceUnavailable(err)).To(BeTrue())
		s.r = s.reconciler(s.c)
		s.pass(b)
		g.Expect(completed(b).Reason).To(Equal(hyperv1.BackupInProgressReason))
	})
	t.Run("When machines leave no room they should be left out, and that be said", func(t *testing.T) {
		g, s := NewWithT(t), newScene(t)
		s.withKey()
		s.names(1)
		crds, err := config.PrivateCAPICRDs()
		g.Expect(err).NotTo(HaveOccurred())
		testenv.Start(t).Install(t, crds...)
		mapping, err := s.c.RESTMapper().RESTMapping(schema.GroupKind{Group: translate.Private, Kind: "Machine"})
		g.Expect(err).NotTo(HaveOccurred())
		for i := range 4 {
			m := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterName": "demo", "bootstrap": map[string]any{"dataSecretName": "x"},
				"infrastructureRef": map[string]any{"apiVersion": "example.com/v1", "apiGroup": "example.com", "kind": "X", "name": "x"}}}}
			m.SetGroupVersionKind(mapping.GroupVersionKind)
			m.SetNamespace(s.ns)
			m.SetName(fmt.Sprint("m-", i))
			m.SetAnnotations(map[string]string{"noise": noise(200 << 10)})
			g.Expect(s.c.Create(t.Context(), m)).To(Succeed())
		}
		b := s.create("one")
		s.pass(b)
		g.Expect(completed(b).Reason).To(Equal(hyperv1.BackupInProgressReason), completed(b).Message)
		s.end(batchv1.JobComplete, "s3://backups/demo/1.db.enc")
		s.pass(b)
		g.Expect(completed(b).Message).To(Equal("Backup completed successfully, without the record of its machines, for which there was no room"))
	})
}

func TestWaiting(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		waits, want time.Duration
	}{
		"When a cluster has just fallen asleep it should be looked at soon":           {0, poll},
		"When a member has been away for some minutes it should be looked at earlier": {4 * time.Minute, time.Minute},
		"When a cluster has slept for hours it should be looked at after minutes":     {8 * time.Hour, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			o := ready()
			o.etcds["etcd"], o.now = members(0), now
			c := reason("False", hyperv1.EtcdUnhealthyReason)
			c.LastTransitionTime = metav1.NewTime(now.Add(-tc.waits))
			o.backup.Status.Conditions = []metav1.Condition{c}
			o.backup.Labels = map[string]string{backups.ScheduleLabel: "daily"}
			NewWithT(t).Expect(planFor(o).again).To(Equal(tc.want))
		})
	}
	t.Run("When etcd is somebody else's a backup should fail at once", func(t *testing.T) {
		g, o := NewWithT(t), ready()
		o.hcp.Spec.Etcd.ManagementType, o.etcds = hyperv1.Unmanaged, nil
		p := planFor(o)
		g.Expect(p.condition.Reason).To(Equal(hyperv1.BackupFailedReason))
		g.Expect(p.condition.Message).To(ContainSubstring("is unmanaged"))
		g.Expect(p.again).To(BeZero())
	})
}
