package hostedcontrolplane

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestSnapshotRestored(t *testing.T) {
	obs := func(ready int32, urls ...string) Observed {
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{RestoreSnapshotURL: urls}}
		return Observed{HCP: hcp, Etcd: &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)}, Status: appsv1.StatefulSetStatus{ReadyReplicas: ready}}}
	}
	const url = "s3://backups/demo/1.db.enc"
	t.Run("When there is no snapshot it should say nothing", func(t *testing.T) {
		NewWithT(t).Expect(snapshotRestored(obs(3))).To(BeNil())
	})
	t.Run("When a member has not served yet it should say nothing", func(t *testing.T) {
		NewWithT(t).Expect(snapshotRestored(obs(2, url))).To(BeNil())
	})
	t.Run("When all have served it should be True, and stay so when one is lost", func(t *testing.T) {
		g := NewWithT(t)
		o := obs(3, url)
		c := snapshotRestored(o)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Status).To(Equal(metav1.ConditionTrue))
		lost := obs(2, url)
		lost.HCP.Status.Conditions = []metav1.Condition{*c}
		g.Expect(snapshotRestored(lost)).NotTo(BeNil())
	})
}
