package netpolicy

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

func published(service hyperv1.ServiceType, by hyperv1.PublishingStrategyType) hyperv1.ServicePublishingStrategyMapping {
	return hyperv1.ServicePublishingStrategyMapping{Service: service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: by}}
}

func TestFor(t *testing.T) {
	always := []string{SameNamespace, KAS, OpenShiftMonitoring, DefaultDeny, DNS, ManagementKAS, ManagementKASAccess}
	for _, component := range componentNames() {
		always = append(always, "component-"+component)
	}
	for name, tc := range map[string]struct {
		in   Input
		want []string // besides always
	}{
		"When nothing is published by node ports it should let in the API, ingress and monitoring": {
			in: Input{Services: []hyperv1.ServicePublishingStrategyMapping{published(hyperv1.APIServer, hyperv1.LoadBalancer)}}, want: []string{OpenShiftIngress}},
		"When machines are pods of the namespace it should open to them what is published":      {in: Input{PodMachines: true}, want: []string{OpenShiftIngress, Machines}},
		"When machines are virtual machines in the namespace there should be a policy for them": {in: Input{VirtualMachines: "demo-1"}, want: []string{OpenShiftIngress, VirtLauncher}},
		"When the tunnel is published by a node port it should let agents in": {
			in:   Input{Services: []hyperv1.ServicePublishingStrategyMapping{published(hyperv1.Konnectivity, hyperv1.NodePort)}},
			want: []string{OpenShiftIngress, NodePortKonnectivity, NodePortKonnectivityKAS}},
		"When the release has no OAuth server it should open nothing for it": {
			in: Input{Services: []hyperv1.ServicePublishingStrategyMapping{published(hyperv1.OAuthServer, hyperv1.NodePort)}}, want: []string{OpenShiftIngress}},
		"When the release has an OAuth server it should let users in": {
			in:   Input{HasOAuth: true, Services: []hyperv1.ServicePublishingStrategyMapping{published(hyperv1.OAuthServer, hyperv1.LoadBalancer)}},
			want: []string{OpenShiftIngress, LoadBalancerOAuth}},
		"When the control plane has a router it should let everybody in there": {in: Input{Payload: true, HasRouter: true}, want: []string{OpenShiftIngress, SharedIngress, PrivateRouter}},
		"When a Kubernetes release is behind a shared Gateway it should open nothing more": {
			in: Input{Management: Management{Gateway: "infra"}}, want: []string{OpenShiftIngress}},
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
				g.Expect(p.Spec.PolicyTypes).NotTo(BeEmpty())
			}
			g.Expect(names[len(names)-1]).To(Equal(DefaultDeny), "what is allowed is allowed before the rest is denied")
			g.Expect(names).To(ConsistOf(append(tc.want, always...)))
			g.Expect(append(names, plan.Delete...)).To(HaveLen(len(always)+13), "every policy is either applied or deleted")
		})
	}
	for name, cloud := range map[string]bool{"When the platform has a cloud it should let the provider out to it": true, "When it has none it should keep the provider inside": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for _, p := range For(Input{Cloud: cloud}).Apply {
				if p.Name == componentPrefix+names.CAPIProvider {
					open := slices.ContainsFunc(p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool { return len(r.To) == 0 && r.Ports[0].Port == nil })
					g.Expect(open).To(Equal(cloud))
				}
			}
		})
	}
	t.Run("When Karpenter makes machines it should reach both API servers, and else have no policy", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(For(Input{}).Delete).To(ContainElement("component-karpenter"))
		plan := For(Input{AutoNode: true})
		i := slices.IndexFunc(plan.Apply, func(p *networkingv1.NetworkPolicy) bool { return p.Name == "component-karpenter" })
		g.Expect(i).To(BeNumerically(">=", 0))
		g.Expect(plan.Apply[i].Spec.Egress).To(HaveLen(2))
		g.Expect(plan.Apply[i].Spec.Ingress).To(BeEmpty())
	})
	t.Run("When a Prometheus of its own asks for metrics it should let in its namespace, too", func(t *testing.T) {
		for _, p := range For(Input{Management: Management{Prometheus: "monitoring"}}).Apply {
			if p.Name == OpenShiftMonitoring {
				g := NewWithT(t)
				g.Expect(p.Spec.Ingress).To(HaveLen(1))
				g.Expect(p.Spec.Ingress[0].From).To(HaveLen(2))
				g.Expect(p.Spec.Ingress[0].From[1].NamespaceSelector.MatchLabels).To(Equal(map[string]string{"kubernetes.io/metadata.name": "monitoring"}))
				return
			}
		}
		t.Fatal("there is no policy for monitoring")
	})
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

// TestVirtualMachines asks policies as a network does whether pods may talk.
func TestVirtualMachines(t *testing.T) {
	for name, payload := range map[string]bool{"a Kubernetes release": false, "an OpenShift payload": true} {
		t.Run("When virtual machines of "+name+" are pods of the namespace they should be as strange to it as machines elsewhere", func(t *testing.T) {
			g := NewWithT(t)
			plan := For(Input{VirtualMachines: "demo-1", Payload: payload, Services: []hyperv1.ServicePublishingStrategyMapping{{Service: hyperv1.APIServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
				Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.7"}}}}})
			machine := labels.Set{hyperv1.InfraIDLabel: "demo-1", "kubevirt.io": "virt-launcher"}
			etcd, api := labels.Set{hyperv1.ControlPlaneComponentLabel: names.Etcd, "app": names.Etcd}, labels.Set{hyperv1.ControlPlaneComponentLabel: names.KubeAPIServer, "app": names.KubeAPIServer}
			g.Expect(mayTalk(g, plan, machine, etcd, 2379)).To(BeFalse())
			g.Expect(mayTalk(g, plan, machine, api, 6443)).To(BeTrue())
			g.Expect(mayTalk(g, plan, machine, machine, 10250)).To(BeTrue())
			g.Expect(mayTalk(g, plan, machine, labels.Set{"app": "package"}, 80)).To(BeFalse())
			for _, p := range plan.Apply {
				if p.Name == VirtLauncher {
					g.Expect(p.Spec.Egress).To(ContainElement(HaveField("To", ContainElement(HaveField("IPBlock", HaveValue(HaveField("CIDR", "192.0.2.7/32")))))))
					g.Expect(p.Spec.Ingress[0].From).To(BeEmpty())
					g.Expect(p.Spec.Ingress[0].Ports).To(HaveLen(3))
				}
			}
		})
	}
	t.Run("When machines are elsewhere no policy should say anything of virtual machines", func(t *testing.T) {
		for _, p := range For(Input{}).Apply {
			NewWithT(t).Expect(fmt.Sprint(p.Spec)).NotTo(ContainSubstring("kubevirt"))
		}
	})
}

// TestSharedEndpoints asks policies whether proxies that run in namespaces of their own may lead clients to a payload's servers.
func TestSharedEndpoints(t *testing.T) {
	ingress := labels.Set{"kubernetes.io/metadata.name": "hypershift-sharedingress", "hypershift.openshift.io/component": "shared-ingress"}
	gateway := labels.Set{"kubernetes.io/metadata.name": "infra"}
	oauth, ignition, etcd := labels.Set{"app": "oauth-openshift"}, labels.Set{"app": "ignition-server-proxy"}, labels.Set{hyperv1.ControlPlaneComponentLabel: names.Etcd}
	for name, tc := range map[string]struct {
		in   Input
		from labels.Set
		to   labels.Set
		port int32
		want bool
	}{
		"When users log in through the shared ingress they should reach the OAuth server": {Input{}, ingress, oauth, 6443, true},
		"When machines boot through the shared ingress they should reach Ignition":        {Input{}, ingress, ignition, 8443, true},
		"When a namespace only has the shared ingress's name it should be kept out":       {Input{}, labels.Set{"kubernetes.io/metadata.name": "hypershift-sharedingress"}, oauth, 6443, false},
		"When users log in through a Gateway they should reach the OAuth server":          {Input{Management: Management{Gateway: "infra"}}, gateway, oauth, 6443, true},
		"When machines boot through a Gateway they should reach Ignition":                 {Input{Management: Management{Gateway: "infra"}}, gateway, ignition, 8443, true},
		"When pods run beside a Gateway they should reach nothing else":                   {Input{Management: Management{Gateway: "infra"}}, gateway, etcd, 2379, false},
		"When there is no Gateway no namespace should be let in for one":                  {Input{}, gateway, oauth, 6443, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			tc.in.Payload, tc.in.HasOAuth, tc.in.HasIgnition = true, true, true
			g.Expect(letsIn(g, For(tc.in), tc.from, tc.to, tc.port)).To(Equal(tc.want))
		})
	}
	t.Run("When virtual machines of a payload boot they should reach the shared endpoints", func(t *testing.T) {
		for _, p := range For(Input{Payload: true, VirtualMachines: "demo-1", Management: Management{Gateway: "infra"}}).Apply {
			if p.Name == VirtLauncher {
				g := NewWithT(t)
				for _, namespace := range []labels.Set{ingress, gateway} {
					g.Expect(slices.ContainsFunc(p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool { return has(g, r.To, namespace) })).To(BeTrue(), "%v", namespace)
				}
				return
			}
		}
		t.Fatal("there is no policy for virtual machines")
	})
}

// letsIn says whether policies let pods of another namespace, which has these labels, open connections to a pod.
func letsIn(g Gomega, plan Plan, namespace, to labels.Set, port int32) bool {
	return slices.ContainsFunc(plan.Apply, func(p *networkingv1.NetworkPolicy) bool {
		s, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		g.Expect(err).NotTo(HaveOccurred())
		return s.Matches(to) && slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
			return (len(r.From) == 0 || has(g, r.From, namespace)) && open(r.Ports, port)
		})
	})
}

// has says whether peers are all pods of a namespace that has these labels.
func has(g Gomega, peers []networkingv1.NetworkPolicyPeer, namespace labels.Set) bool {
	return slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		if p.NamespaceSelector == nil || p.PodSelector != nil {
			return false
		}
		s, err := metav1.LabelSelectorAsSelector(p.NamespaceSelector)
		g.Expect(err).NotTo(HaveOccurred())
		return s.Matches(namespace)
	})
}

func open(list []networkingv1.NetworkPolicyPort, port int32) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(p networkingv1.NetworkPolicyPort) bool {
		return *p.Protocol == corev1.ProtocolTCP && (p.Port == nil || p.Port.IntVal == port)
	})
}

// mayTalk says whether policies let a pod of the namespace open connections to another one.
func mayTalk(g Gomega, plan Plan, from, to labels.Set, port int32) bool {
	matches := func(selector *metav1.LabelSelector, pod labels.Set) bool {
		s, err := metav1.LabelSelectorAsSelector(selector)
		g.Expect(err).NotTo(HaveOccurred())
		return s.Matches(pod)
	}
	peer := func(list []networkingv1.NetworkPolicyPeer, pod labels.Set) bool {
		return len(list) == 0 || slices.ContainsFunc(list, func(p networkingv1.NetworkPolicyPeer) bool {
			return p.PodSelector != nil && p.NamespaceSelector == nil && matches(p.PodSelector, pod)
		})
	}
	out, in := false, false
	for _, p := range plan.Apply {
		if matches(&p.Spec.PodSelector, from) {
			out = out || slices.ContainsFunc(p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool { return peer(r.To, to) && open(r.Ports, port) })
		}
		if matches(&p.Spec.PodSelector, to) {
			in = in || slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool { return peer(r.From, from) && open(r.Ports, port) })
		}
	}
	return out && in
}

func TestMerge(t *testing.T) {
	for name, tc := range map[string]struct{ in, want []string }{
		"When ranges are neighbours it should join them":        {in: []string{"10.0.1.0/24", "10.0.0.0/24", "10.0.2.0/24", "10.0.3.0/24"}, want: []string{"10.0.0.0/22"}},
		"When neighbours are no halves it should keep both":     {in: []string{"10.0.1.0/24", "10.0.2.0/24"}, want: []string{"10.0.1.0/24", "10.0.2.0/24"}},
		"When one lies in another it should keep the wider one": {in: []string{"10.244.0.1/32", "10.244.0.0/24", "10.244.0.0/24"}, want: []string{"10.244.0.0/24"}},
		"When families are mixed it should keep them apart":     {in: []string{"fd00::/64", "10.0.0.0/8"}, want: []string{"10.0.0.0/8", "fd00::/64"}},
		"When an address is IPv4 in IPv6 it should not matter":  {in: []string{"192.0.2.1/24"}, want: []string{"192.0.2.0/24"}},
	} {
		t.Run(name, func(t *testing.T) {
			var in []netip.Prefix
			for _, s := range tc.in {
				in = append(in, netip.MustParsePrefix(s))
			}
			var got []string
			for _, p := range merge(in) {
				got = append(got, p.String())
			}
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

func TestMergeCoversTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.Custom(func(t *rapid.T) netip.Prefix {
			a := [4]byte{10, 0, rapid.Byte().Draw(t, "c"), rapid.Byte().Draw(t, "d")}
			return netip.PrefixFrom(netip.AddrFrom4(a), rapid.IntRange(20, 32).Draw(t, "bits"))
		})
		in := rapid.SliceOfN(prefix, 0, 20).Draw(t, "in")
		out := merge(in)
		address := netip.AddrFrom4([4]byte{10, 0, rapid.Byte().Draw(t, "x"), rapid.Byte().Draw(t, "y")})
		covered := func(list []netip.Prefix) bool {
			return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(address) })
		}
		if covered(in) != covered(out) {
			t.Fatalf("%v and %v differ about %v", in, out, address)
		}
	})
}
