package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// A restored cluster with a schedule may be told to sleep seconds after it was made, before etcd has loaded the snapshot.
func TestSleepFromTheStart(t *testing.T) {
	for name, tc := range map[string]struct {
		policy  hyperv1.AvailabilityPolicy
		members int32
		init    []string
	}{
		"When a single etcd sleeps before it ever ran it should load its snapshot once it wakes": {hyperv1.SingleReplica, 1, []string{"etcd-init"}},
		"When an etcd of three sleeps before it ever ran its members should found it on waking":  {hyperv1.HighlyAvailable, 3, []string{"etcd-init", "reset-member"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, func(hcp *hyperv1.HostedControlPlane) {
				hcp.Spec.ControllerAvailabilityPolicy = tc.policy
				hcp.Spec.Etcd.Managed.Storage.RestoreSnapshotURL = []string{"https://backups.example.com/demo.db"}
				hcp.Annotations[hyperv1.HibernateAnnotation] = "true"
			})
			etcd := func() (*appsv1.StatefulSet, []string) {
				s, init := &appsv1.StatefulSet{}, []string{}
				w.get(client.ObjectKey{Namespace: w.hcp.Namespace, Name: "etcd"}, s)
				for _, c := range s.Spec.Template.Spec.InitContainers {
					init = append(init, c.Name)
				}
				return s, init
			}
			for range 2 { // etcd goes when kube-apiserver has
				w.mustPass()
				for _, c := range workloads() {
					if c.Name() == "etcd" || w.exists(&appsv1.Deployment{}, c.Name()) {
						w.rolledOut(c.Name())
					}
				}
			}
			w.mustPass()
			s, _ := etcd()
			g.Expect(s.Spec.Replicas).To(HaveValue(BeZero()))
			g.Expect(w.why()).To(HaveKeyWithValue("etcd", component.AsExpectedReason), "asleep as expected, and of no version")

			delete(w.hcp.Annotations, hyperv1.HibernateAnnotation)
			w.mustPass()
			s, init := etcd()
			g.Expect(ptr.Deref(s.Spec.Replicas, 1)).To(Equal(tc.members))
			g.Expect(init).To(Equal(tc.init))
			g.Expect(w.exists(&corev1.ConfigMap{}, "etcd-founded")).To(BeFalse())

			w.rolledOut("etcd")
			w.mustPass()
			_, init = etcd()
			g.Expect(init).NotTo(ContainElement("etcd-init"))
			g.Expect(w.exists(&corev1.ConfigMap{}, "etcd-founded")).To(BeTrue(), "that is another rollout")
		})
	}
}
