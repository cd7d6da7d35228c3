package component

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

func TestMayStart(t *testing.T) {
	etcd := func(available metav1.ConditionStatus) []hyperv1.ControlPlaneComponent {
		return []hyperv1.ControlPlaneComponent{{
			ObjectMeta: metav1.ObjectMeta{Name: names.Etcd},
			Status:     hyperv1.ControlPlaneComponentStatus{Conditions: []metav1.Condition{{Type: Available, Status: available}}},
		}}
	}
	for name, tc := range map[string]struct {
		component  WorkloadComponent
		etcd       hyperv1.EtcdManagementType
		components []hyperv1.ControlPlaneComponent
		want       bool
	}{
		"When it does not start early it should wait":                                 {want: false},
		"When it starts early with nothing named it should start":                     {component: WorkloadComponent{startsEarly: true}, want: true},
		"When what it starts after does not exist it should wait":                     {component: WorkloadComponent{startsEarly: true, startsAfter: []string{names.Etcd}}, etcd: hyperv1.Managed},
		"When what it starts after is not available it should wait":                   {component: WorkloadComponent{startsEarly: true, startsAfter: []string{names.Etcd}}, etcd: hyperv1.Managed, components: etcd(metav1.ConditionFalse)},
		"When what it starts after is available it should start":                      {component: WorkloadComponent{startsEarly: true, startsAfter: []string{names.Etcd}}, etcd: hyperv1.Managed, components: etcd(metav1.ConditionTrue), want: true},
		"When somebody else manages the etcd that it starts after it should not wait": {component: WorkloadComponent{startsEarly: true, startsAfter: []string{names.Etcd}}, etcd: hyperv1.Unmanaged, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Spec.Etcd.ManagementType = tc.etcd
			NewWithT(t).Expect(tc.component.mayStart(hcp, tc.components)).To(Equal(tc.want))
		})
	}
}
