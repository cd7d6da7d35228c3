package component

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestWherePayloadsRun(t *testing.T) {
	const own, theirs = "own", "theirs"
	for name, tc := range map[string]struct {
		component  string
		everywhere bool // the control plane may run anywhere
		selector   map[string]string
		tolerated  []string
	}{
		"When the control plane has nodes of its own it should run there, whatever the component says": {component: "web", selector: map[string]string{theirs: "x"}, tolerated: []string{theirs}},
		"When the control plane may run anywhere it should run where the component says":               {component: "web", everywhere: true, selector: map[string]string{own: "y"}},
		"When it is etcd both should hold":                                            {component: "etcd", selector: map[string]string{theirs: "x", own: "y"}, tolerated: []string{theirs, own}},
		"When it is a shard of etcd that may run anywhere its own wishes should hold": {component: "etcd-events", everywhere: true, selector: map[string]string{own: "y"}, tolerated: []string{own}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx := contextOf(t, func(hcp *hyperv1.HostedControlPlane) {
				if !tc.everywhere {
					hcp.Spec.NodeSelector = map[string]string{theirs: "x"}
					hcp.Spec.Tolerations = []corev1.Toleration{{Key: theirs}}
				}
			})
			ctx.Release.Kubernetes = false
			c := NewDeploymentComponent(tc.component, folder(nil), Options{}).WithAdaptFunction(func(_ WorkloadContext, d *appsv1.Deployment) error {
				d.Spec.Template.Spec.NodeSelector = map[string]string{own: "y"}
				d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: own}}
				return nil
			}).Build()
			pod := deploymentOf(t, c, ctx).Spec.Template.Spec
			g.Expect(pod.NodeSelector).To(Equal(tc.selector))
			var keys []string
			for _, t := range pod.Tolerations[2:] { // after those for nodes of control planes
				keys = append(keys, t.Key)
			}
			g.Expect(keys).To(Equal(tc.tolerated))
		})
	}
}
