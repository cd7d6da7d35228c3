package netpolicy

import (
	"testing"

	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func published(service hyperv1.ServiceType, by hyperv1.PublishingStrategyType) hyperv1.ServicePublishingStrategyMapping {
	return hyperv1.ServicePublishingStrategyMapping{Service: service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: by}}
}

func TestFor(t *testing.T) {
	always := []string{SameNamespace, KAS, OpenShiftMonitoring}
	for name, tc := range map[string]struct {
		in   Input
		want []string // besides always
	}{
		"When nothing is published by node ports it should let in the API, ingress and monitoring": {
			in: Input{Services: []hyperv1.ServicePublishingStrategyMapping{published(hyperv1.APIServer, hyperv1.LoadBalancer)}}, want: []string{OpenShiftIngress}},
		"When routes go through a router of their own it should keep the ingress out": {in: Input{RoutesOnOwnRouter: true}},
		"When the tunnel is published by a node port it should let agents in": {
			in:   Input{Services: []hyperv1.ServicePublishingStrategyMapping{published(hyperv1.Konnectivity, hyperv1.NodePort)}},
			want: []string{OpenShiftIngress, NodePortKonnectivity, NodePortKonnectivityKAS}},
		"When the release has no OAuth server it should open nothing for it": {
			in: Input{Services: []hyperv1.ServicePublishingStrategyMapping{published(hyperv1.OAuthServer, hyperv1.NodePort)}}, want: []string{OpenShiftIngress}},
		"When the release has an OAuth server it should let users in": {
			in:   Input{HasOAuth: true, Services: []hyperv1.ServicePublishingStrategyMapping{published(hyperv1.OAuthServer, hyperv1.LoadBalancer)}},
			want: []string{OpenShiftIngress, LoadBalancerOAuth}},
		"When ignition is published by a node port it should let machines in": {
			in:   Input{HasIgnition: true, Services: []hyperv1.ServicePublishingStrategyMapping{published(hyperv1.Ignition, hyperv1.NodePort)}},
			want: []string{OpenShiftIngress, NodePortIgnition, NodePortIgnitionProxy}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plan := For(tc.in)
			var names []string
			for _, p := range plan.Apply {
				names = append(names, p.Name)
				g.Expect(p.Spec.PolicyTypes).To(Equal([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}))
			}
			g.Expect(names).To(ConsistOf(append(tc.want, always...)))
			g.Expect(append(names, plan.Delete...)).To(HaveLen(10), "every policy is either applied or deleted")
		})
	}
	t.Run("When the API server has another port it should let in both", func(t *testing.T) {
		g := NewWithT(t)
		for _, p := range For(Input{APIPort: 7443}).Apply {
			if p.Name == KAS {
				g.Expect(p.Spec.PodSelector.MatchLabels).To(HaveKeyWithValue("app", "kube-apiserver"))
				g.Expect(p.Spec.Ingress).To(HaveLen(1))
				g.Expect(p.Spec.Ingress[0].Ports).To(HaveLen(2))
				g.Expect(p.Spec.Ingress[0].From).To(BeEmpty())
			}
		}
	})
}
