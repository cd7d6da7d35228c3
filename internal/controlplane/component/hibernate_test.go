package component

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// TestFallsAsleep plays the stop of a control plane, pass by pass.
func TestFallsAsleep(t *testing.T) {
	g := NewWithT(t)
	running := []string{"etcd", "etcd-events", "kube-apiserver", "kube-controller-manager", "kube-scheduler", names.ControlPlaneOperator, names.ClusterAPI}
	var order [][]string
	for range len(running) {
		var stops []string
		for _, name := range running {
			if !StaysAwake(name) && len(stillNeeding(name, running)) == 0 {
				stops = append(stops, name)
			}
		}
		if len(stops) == 0 {
			break
		}
		order = append(order, stops)
		running = slices.DeleteFunc(running, func(name string) bool { return slices.Contains(stops, name) })
	}
	g.Expect(order).To(Equal([][]string{{"kube-controller-manager", "kube-scheduler"}, {"kube-apiserver"}, {"etcd", "etcd-events"}}))
	g.Expect(running).To(Equal([]string{names.ControlPlaneOperator, names.ClusterAPI}), "they wake it")
}

func TestHibernate(t *testing.T) {
	sleeping := annotate(hyperv1.HibernateAnnotation, "true")
	workload := func(name string, replicas, pods int32) client.Object {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{names.ManagedByLabel: names.ControlPlaneOperator}},
			Spec:       appsv1.DeploymentSpec{Replicas: ptr.To(replicas)}, Status: appsv1.DeploymentStatus{Replicas: pods},
		}
	}
	for name, tc := range map[string]struct {
		component string
		hcp       func(*hyperv1.HostedControlPlane)
		live      []client.Object
		want      int32
	}{
		"When nobody asks for it it should run":                               {component: "web", want: 1},
		"When the cluster sleeps it should not run":                           {component: "web", hcp: sleeping, live: []client.Object{workload("kube-apiserver", 1, 1)}, want: 0},
		"When others still run kube-apiserver should serve them":              {component: "kube-apiserver", hcp: sleeping, live: []client.Object{workload("web", 1, 1)}, want: 1},
		"When pods of others still end kube-apiserver should serve them":      {component: "kube-apiserver", hcp: sleeping, live: []client.Object{workload("web", 0, 1)}, want: 1},
		"When all others are gone kube-apiserver should stop":                 {component: "kube-apiserver", hcp: sleeping, live: []client.Object{workload("web", 0, 0)}, want: 0},
		"When kube-apiserver still runs etcd should serve it":                 {component: "etcd", hcp: sleeping, live: []client.Object{workload("kube-apiserver", 0, 1)}, want: 1},
		"When kube-apiserver is gone etcd should stop":                        {component: "etcd", hcp: sleeping, live: []client.Object{workload("kube-apiserver", 0, 0)}, want: 0},
		"When it wakes others the control-plane-operator should run":          {component: names.ControlPlaneOperator, hcp: sleeping, want: 1},
		"When the annotation says no it should run":                           {component: "web", hcp: annotate(hyperv1.HibernateAnnotation, "false"), want: 1},
		"When the hosted cluster is being deleted it should run for that end": {component: "web", want: 1, hcp: both(sleeping, func(h *hyperv1.HostedControlPlane) { h.DeletionTimestamp = ptr.To(metav1.Now()) })},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewDeploymentComponent(tc.component, folder(nil), Options{}).Build()
			NewWithT(t).Expect(deploymentOf(t, c, contextOf(t, tc.hcp, tc.live...)).Spec.Replicas).To(HaveValue(Equal(tc.want)))
		})
	}
}
