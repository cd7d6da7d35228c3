package hostedcontrolplane

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestSomethingBegan(t *testing.T) {
	report := func(name string, status metav1.ConditionStatus) hyperv1.ControlPlaneComponent {
		return hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: hyperv1.ControlPlaneComponentStatus{
			Conditions: []metav1.Condition{{Type: hyperv1.ControlPlaneComponentAvailable, Status: status}}}}
	}
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	for name, tc := range map[string]struct {
		reports []hyperv1.ControlPlaneComponent
		serving []string
		want    bool
	}{
		"When nothing serves it should wait":                              {reports: []hyperv1.ControlPlaneComponent{report("etcd", no), report("kube-apiserver", no)}},
		"When etcd serves and its report lacks that it should act":        {reports: []hyperv1.ControlPlaneComponent{report("etcd", no), report("kube-apiserver", no)}, serving: []string{"etcd"}, want: true},
		"When a shard of etcd serves it should act":                       {reports: []hyperv1.ControlPlaneComponent{report("etcd", yes), report("etcd-events", no)}, serving: []string{"etcd", "etcd-events"}, want: true},
		"When the report says it already it should wait":                  {reports: []hyperv1.ControlPlaneComponent{report("etcd", yes), report("kube-apiserver", no)}, serving: []string{"etcd"}},
		"When the API server serves it should act":                        {reports: []hyperv1.ControlPlaneComponent{report("kube-apiserver", no), report("kube-scheduler", no)}, serving: []string{"kube-apiserver"}, want: true},
		"When one of several that nobody waits for serves it should wait": {reports: []hyperv1.ControlPlaneComponent{report("kube-apiserver", yes), report("kube-scheduler", no), report("ignition-server", no)}, serving: []string{"kube-scheduler"}},
		"When the last one serves it should act":                          {reports: []hyperv1.ControlPlaneComponent{report("kube-apiserver", yes), report("kube-scheduler", no)}, serving: []string{"kube-scheduler"}, want: true},
		"When all is reported it should wait":                             {reports: []hyperv1.ControlPlaneComponent{report("kube-apiserver", yes), report("kube-scheduler", yes)}, serving: []string{"kube-apiserver", "kube-scheduler"}},
		"When only the operator's own report is behind it should wait":    {reports: []hyperv1.ControlPlaneComponent{report("control-plane-operator", no)}, serving: []string{"control-plane-operator"}},
	} {
		t.Run(name, func(t *testing.T) {
			serving := map[string]bool{}
			for _, n := range tc.serving {
				serving[n] = true
			}
			NewWithT(t).Expect(somethingBegan(tc.reports, serving)).To(Equal(tc.want))
		})
	}
}

func TestAwaited(t *testing.T) {
	scheme, err := newScheme()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	key := client.ObjectKey{Namespace: "clusters-demo", Name: "demo"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "kube-apiserver"}, Status: appsv1.DeploymentStatus{
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}}}
	report := &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "kube-apiserver"}}
	etcd := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "etcd"}, Status: appsv1.StatefulSetStatus{AvailableReplicas: 1}}
	etcdReport := &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "etcd"}}
	of := func(ready bool) *hyperv1.HostedControlPlane {
		return &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Status: hyperv1.HostedControlPlaneStatus{Ready: ready}}
	}
	for name, tc := range map[string]struct {
		objs []client.Object
		news bool
		want bool
	}{
		"When there is no control plane it should look":                            {want: true},
		"When kube-apiserver serves and nobody was told it should act":             {objs: []client.Object{of(false), deployment, report}, want: true},
		"When etcd serves and nobody was told it should act":                       {objs: []client.Object{of(false), etcd, etcdReport}, want: true},
		"When nothing began it should keep the gap":                                {objs: []client.Object{of(false), report}},
		"When the endpoint answers differently it should act":                      {objs: []client.Object{of(false)}, news: true, want: true},
		"When the control plane is ready it should keep the gap, whatever happens": {objs: []client.Object{of(true), deployment, report}, news: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			objs := make([]client.Object, 0, len(tc.objs))
			for _, o := range tc.objs { // the client writes into them
				objs = append(objs, o.DeepCopyObject().(client.Object))
			}
			r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).Build()}
			if tc.news {
				woken := false
				r.told(func(context.Context) { woken = true })(t.Context())
				g.Expect(woken).To(BeTrue())
			}
			g.Expect(r.awaited(t.Context(), ctrl.Request{NamespacedName: key})).To(Equal(tc.want))
		})
	}
}
