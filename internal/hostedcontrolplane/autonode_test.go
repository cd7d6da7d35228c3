package hostedcontrolplane

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

func TestAutoNodeEnabled(t *testing.T) {
	ask := func(obs *Observed) {
		obs.Flavour = kubernetes
		obs.HCP.Spec.Platform.Type = hyperv1.LocalPlatform
		obs.HCP.Spec.AutoNode = &hyperv1.AutoNode{Provisioner: hyperv1.ProvisionerConfig{
			Name: hyperv1.ProvisionerKarpenter, Karpenter: &hyperv1.KarpenterConfig{Platform: hyperv1.KarpenterLocalPlatform}}}
		obs.Release.Images = map[string]string{"karpenter": "r/karpenter@sha256:1"}
	}
	reports := func(available, complete metav1.ConditionStatus) func(*Observed) {
		return func(obs *Observed) {
			r := componentReport("karpenter", available, complete, "1.36.3")
			r.Status.Conditions[1].Message = "0 of 1"
			obs.Components = append(obs.Components, r)
		}
	}
	for name, tc := range map[string]struct {
		mutate []func(*Observed)
		want   string // status, reason and message; empty: no condition
	}{
		"When nobody asks for it there should be no condition":           {},
		"When it is asked for and not there yet it should be on its way": {mutate: []func(*Observed){ask}, want: "False AutoNodeProgressing Karpenter has not been deployed yet"},
		"When it rolls out it should say what it waits for": {
			mutate: []func(*Observed){ask, reports("False", "False")}, want: "False AutoNodeProgressing Karpenter is being rolled out: 0 of 1"},
		"When it runs it should be enabled": {mutate: []func(*Observed){ask, reports("True", "True")}, want: "True AsExpected " + hyperv1.AllIsWellMessage},
		"When the release has no image of it the condition should say how to get it": {
			mutate: []func(*Observed){ask, func(obs *Observed) { obs.Release.Images = nil }},
			want:   "False AutoNodeProgressing release 1.36.3 has no image \"karpenter\": `make karpenter up` adds it to local releases, and those of distributions include it"},
		"When it is switched off and still there it should say so": {mutate: []func(*Observed){func(obs *Observed) {
			obs.Flavour = kubernetes
			obs.Deployments = append(obs.Deployments, appsv1.Deployment{})
			obs.Deployments[len(obs.Deployments)-1].Name = "karpenter"
		}}, want: "False AutoNodeProgressing Karpenter is being removed"},
		"When it is switched off and machines of it are left it should say how many": {mutate: []func(*Observed){func(obs *Observed) {
			obs.Flavour = kubernetes
			obs.Deployments = append(obs.Deployments, appsv1.Deployment{})
			obs.Deployments[len(obs.Deployments)-1].Name = "karpenter"
			obs.HCP.Status.AutoNode.NodeClaimCount = ptr.To[int32](3)
		}}, want: "False AutoNodeProgressing Karpenter is removed once its 3 machines are drained and gone; `kubectl get nodeclaims` in the hosted cluster shows them"},
		"When a pass did not look at the release it should keep what was said": {mutate: []func(*Observed){ask, func(obs *Observed) {
			obs.Release = nil
			obs.HCP.Status.Conditions = append(obs.HCP.Status.Conditions, conditions.True(hyperv1.AutoNodeEnabled, "AsExpected", "before"))
		}}, want: "True AsExpected before"},
		"When the release is a payload it should leave the condition to its operator": {mutate: []func(*Observed){ask, func(obs *Observed) { obs.Flavour = openShift }}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := autoNodeEnabled(wellObserved(tc.mutate...))
			if tc.want == "" {
				g.Expect(c).To(BeNil())
				return
			}
			g.Expect(c).NotTo(BeNil())
			g.Expect(string(c.Status) + " " + c.Reason + " " + c.Message).To(Equal(tc.want))
		})
	}
}

func TestKarpenterLeaves(t *testing.T) {
	counted := func(n int32, asked bool) *hyperv1.HostedControlPlane {
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Status.AutoNode.NodeClaimCount = &n
		if asked {
			hcp.Spec.AutoNode = &hyperv1.AutoNode{}
		}
		return hcp
	}
	for name, tc := range map[string]struct {
		before, after *hyperv1.HostedControlPlane
		want          bool
	}{
		"When machines come and go while it is asked for nobody should be woken": {counted(1, true), counted(2, true), false},
		"When machines of one that is to go become fewer it should be told":      {counted(2, false), counted(1, false), true},
		"When nothing is counted any more the component should go":               {counted(1, false), &hyperv1.HostedControlPlane{}, true},
		"When the same is counted nobody should be woken":                        {counted(1, false), counted(1, false), false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(karpenterLeaves{}.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after})).To(Equal(tc.want))
		})
	}
}
