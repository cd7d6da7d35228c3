package component

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	. "github.com/onsi/gomega"
)

func TestProcessors(t *testing.T) {
	requests := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	for name, tc := range map[string]struct {
		container corev1.Container
		policy    hyperv1.AvailabilityPolicy
		want      string // empty: it is not set
	}{
		"When a part of a processor is requested it should get one":       {container: corev1.Container{Name: "c", Resources: requests("50m")}, want: "1"},
		"When nothing is requested it should get one":                     {container: corev1.Container{Name: "c"}, want: "1"},
		"When more than two are requested it should get three":            {container: corev1.Container{Name: "c", Resources: requests("2100m")}, want: "3"},
		"When somebody says how many it should leave it":                  {container: corev1.Container{Name: "c", Env: []corev1.EnvVar{{Name: "GOMAXPROCS", Value: "7"}}}, want: "7"},
		"When it is the API server it should get all":                     {container: corev1.Container{Name: "kube-apiserver"}},
		"When it is etcd it should get all":                               {container: corev1.Container{Name: "etcd"}},
		"When the control plane is highly available it should get all":    {container: corev1.Container{Name: "c"}, policy: hyperv1.HighlyAvailable},
		"When the control plane has single replicas it should be sparing": {container: corev1.Container{Name: "c"}, policy: hyperv1.SingleReplica, want: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Spec.ControllerAvailabilityPolicy = tc.policy
			s := &scope{ctx: WorkloadContext{HCP: hcp}, template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{tc.container}}}}
			g.Expect(processors(s)).To(Succeed())
			var got string
			for _, e := range s.template.Spec.Containers[0].Env {
				if e.Name == processorsVariable {
					got = e.Value
				}
			}
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
