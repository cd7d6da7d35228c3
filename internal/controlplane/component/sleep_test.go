package component

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestSleepUntil(t *testing.T) {
	live := func(replicas int32) []client.Object {
		return []client.Object{&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To(replicas)},
		}}
	}
	for name, tc := range map[string]struct {
		needed bool
		hcp    func(*hyperv1.HostedControlPlane)
		live   []client.Object
		want   int32
	}{
		"When it has no work it should not run":                         {want: 0},
		"When it has work it should run":                                {needed: true, want: 1},
		"When it has work in a highly available cluster it should run":  {needed: true, hcp: highlyAvailable, want: 2},
		"When its work comes it should wake":                            {needed: true, live: live(0), want: 1},
		"When it sleeps it should go on sleeping":                       {live: live(0), want: 0},
		"When it ran once it should go on running":                      {live: live(1), want: 1},
		"When somebody debugs it it should not run":                     {needed: true, live: live(1), hcp: annotate(debugDeploymentsAnnotation, "web"), want: 0},
		"When it slept in a highly available cluster it should go on":   {hcp: highlyAvailable, live: live(0), want: 0},
		"When it runs it should run as often as availability asks for ": {hcp: highlyAvailable, live: live(1), want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewDeploymentComponent("web", folder(nil), Options{}).
				SleepUntil(func(WorkloadContext) (bool, error) { return tc.needed, nil }).Build()
			NewWithT(t).Expect(deploymentOf(t, c, contextOf(t, tc.hcp, tc.live...)).Spec.Replicas).To(HaveValue(Equal(tc.want)))
		})
	}
	t.Run("When nobody knows whether it has work it should say so", func(t *testing.T) {
		c := NewDeploymentComponent("web", folder(nil), Options{}).Build().
			SleepUntil(func(WorkloadContext) (bool, error) { return false, errors.New("no answer") })
		_, err := c.Render(contextOf(t, nil))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("whether web has work to do: no answer")))
	})
}
