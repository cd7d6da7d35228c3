package etcd

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

func TestRestore(t *testing.T) {
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{RestoreSnapshotURL: []string{"https://bucket.example.com/demo.db"}}}
	pod := func() *corev1.PodSpec {
		return &corev1.PodSpec{InitContainers: []corev1.Container{{Name: "ensure-dns"}, {Name: "reset-member"}}, Containers: []corev1.Container{{Name: container, Env: []corev1.EnvVar{
			{Name: "NAMESPACE"}, {Name: "HOSTNAME"}, {Name: "ETCD_QUOTA_BACKEND_BYTES"}, {Name: "ETCD_INITIAL_ADVERTISE_PEER_URLS", Value: "https://$(HOSTNAME)"}, {Name: "ETCD_INITIAL_CLUSTER", Value: "etcd-0=x,etcd-1=y"}}}}}
	}
	t.Run("When a cluster of several begins with a snapshot each member should know the others, before it looks whether it has to join them", func(t *testing.T) {
		g, p := NewWithT(t), pod()
		cluster{}.adaptRestore(hcp, p)
		var order []string
		for _, c := range p.InitContainers {
			order = append(order, c.Name)
		}
		g.Expect(order).To(Equal([]string{"ensure-dns", "etcd-init", "reset-member"}))
		var env []string
		for _, e := range p.InitContainers[1].Env {
			env = append(env, e.Name)
		}
		g.Expect(env).To(Equal([]string{"RESTORE_URL_ETCD", "NAMESPACE", "HOSTNAME", "ETCD_INITIAL_ADVERTISE_PEER_URLS", "ETCD_INITIAL_CLUSTER"}))
	})
	t.Run("When it was restored it should never be again", func(t *testing.T) {
		g, p, done := NewWithT(t), pod(), hcp.DeepCopy()
		done.Status.Conditions = append(done.Status.Conditions, conditions.True(hyperv1.EtcdSnapshotRestored, hyperv1.AsExpectedReason, ""))
		cluster{}.adaptRestore(done, p)
		g.Expect(p.InitContainers).To(HaveLen(2))
	})
}
