package hostedcontrolplane

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/release"
)

func TestPlanPublication(t *testing.T) {
	for name, tc := range map[string]struct {
		mutate func(*Observed)
		acts   bool
	}{
		"When nothing stands in the way it should publish":                        {mutate: func(*Observed) {}, acts: true},
		"When it is paused it should do nothing":                                  {mutate: func(o *Observed) { o.Pause = pause.Pause{Active: true} }},
		"When the management cluster can't do what is asked it should do nothing": {mutate: func(o *Observed) { o.Invalid = errors.New("no Routes") }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obs := wellObserved(tc.mutate)
			p := planPublication(obs)
			g.Expect(p.acts).To(Equal(tc.acts))
			if !tc.acts {
				g.Expect(p.objects).To(BeEmpty())
				return
			}
			g.Expect(p.objects[0].GetName()).To(Equal("default"), "the ServiceAccount of pods that name none")
			g.Expect(p.objects[0].GetOwnerReferences()).To(BeEmpty(), "it is the namespace's")
			g.Expect(len(p.objects)).To(BeNumerically(">", 1))
			for _, svc := range p.objects[1:] {
				g.Expect(metav1.IsControlledBy(svc, obs.HCP)).To(BeTrue(), svc.GetName())
			}
		})
	}
}

func TestPlanRollout(t *testing.T) {
	t.Run("When components are planned they should be told what was observed, and what the process brings", func(t *testing.T) {
		g := NewWithT(t)
		obs := wellObserved(func(o *Observed) {
			o.Infra = endpoints.Status{APIHost: "api.example.com"}
			o.Management = component.Management{Nodes: 3}
			o.Release, o.UserRelease = &release.Release{Version: "2", Kubernetes: true}, &release.Release{Version: "1", Kubernetes: true}
		})
		p := planRollout(obs, controlplane.ComponentsOf(obs.HCP, obs.Release), component.WorkloadContext{MetricsSet: "SRE"})
		g.Expect(p.context.HCP).To(BeIdenticalTo(obs.HCP))
		g.Expect(p.context.Release.Version + " " + p.context.UserRelease.Version).To(Equal("2 1"))
		g.Expect(p.context.Infra.APIHost).To(Equal("api.example.com"))
		g.Expect(p.context.Management.Nodes).To(Equal(3))
		g.Expect(p.context.MetricsSet).To(Equal("SRE"))
		g.Expect(p.components[0].Name() + " " + p.components[1].Name()).To(Equal("etcd kube-apiserver"))
	})

	t.Run("When etcd is somebody else's it should not miss its image", func(t *testing.T) {
		g := NewWithT(t)
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(missingImages(hcp, []string{"etcd", "kube-scheduler"})).To(Equal([]string{"etcd", "kube-scheduler"}))
		hcp.Spec.Etcd.ManagementType = hyperv1.Unmanaged
		g.Expect(missingImages(hcp, []string{"etcd", "kube-scheduler"})).To(Equal([]string{"kube-scheduler"}))
	})
}
