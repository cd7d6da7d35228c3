package endpoints

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func hcp(strategy hyperv1.ServicePublishingStrategy, mutate ...func(*hyperv1.HostedControlPlane)) *hyperv1.HostedControlPlane {
	h := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}}
	h.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{{Service: hyperv1.APIServer, ServicePublishingStrategy: strategy}}
	h.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}}
	for _, m := range mutate {
		m(h)
	}
	return h
}

var (
	loadBalancer = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
	named        = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer, LoadBalancer: &hyperv1.LoadBalancerPublishingStrategy{Hostname: "api.example.com"}}
	nodePort     = hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "10.244.0.1", Port: 30443}}
	none         = hyperv1.ServicePublishingStrategy{Type: hyperv1.None}
	route        = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
)

func service(mutate ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "kube-apiserver"}}
	s.Spec.ClusterIP = "10.96.7.7"
	s.Spec.Ports = []corev1.ServicePort{{Port: 6443}}
	for _, m := range mutate {
		m(s)
	}
	return s
}

func ingress(i ...corev1.LoadBalancerIngress) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Status.LoadBalancer.Ingress = i }
}

func TestStatusOf(t *testing.T) {
	for name, tc := range map[string]struct {
		hcp   *hyperv1.HostedControlPlane
		live  Live
		want  Status
		ready bool
	}{
		"When the Service does not exist it should say so": {
			hcp:  hcp(loadBalancer),
			want: Status{Missing: []string{"service clusters-demo/kube-apiserver does not exist yet"}},
		},
		"When the load balancer has no address it should repeat the warnings": {
			hcp:  hcp(loadBalancer),
			live: Live{API: service(), Warnings: []string{"SyncLoadBalancerFailed: no quota"}},
			want: Status{APIServiceIP: "10.96.7.7", Missing: []string{"load balancer of service clusters-demo/kube-apiserver has no address yet: SyncLoadBalancerFailed: no quota"}},
		},
		"When the load balancer has an IP it should advertise that": {
			hcp:  hcp(loadBalancer),
			live: Live{API: service(ingress(corev1.LoadBalancerIngress{IP: "10.97.0.3"}))},
			want: Status{APIHost: "10.97.0.3", APIPort: 6443, AdvertiseAddress: "10.97.0.3", AdvertisePort: 6443, APIServiceIP: "10.96.7.7"}, ready: true,
		},
		"When the load balancer has a name it should advertise the fixed address behind a node proxy": {
			hcp:  hcp(loadBalancer),
			live: Live{API: service(ingress(corev1.LoadBalancerIngress{}, corev1.LoadBalancerIngress{Hostname: "lb.cloud.example.com", IP: "1.2.3.4"}))},
			want: Status{APIHost: "lb.cloud.example.com", APIPort: 6443, AdvertiseAddress: "172.20.0.1", AdvertisePort: 6443, NodeProxy: true, APIServiceIP: "10.96.7.7"}, ready: true,
		},
		"When the user names the load balancer it should not wait for its address": {
			hcp:  hcp(named),
			live: Live{API: service()},
			want: Status{APIHost: "api.example.com", APIPort: 6443, AdvertiseAddress: "172.20.0.1", AdvertisePort: 6443, NodeProxy: true, APIServiceIP: "10.96.7.7"}, ready: true,
		},
		"When a node port is assigned it should be reached at the given address": {
			hcp:  hcp(nodePort),
			live: Live{API: service(func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30443 })},
			want: Status{APIHost: "10.244.0.1", APIPort: 30443, AdvertiseAddress: "10.244.0.1", AdvertisePort: 30443, APIServiceIP: "10.96.7.7"}, ready: true,
		},
		"When no node port is assigned it should say so": {
			hcp:  hcp(nodePort),
			live: Live{API: service()},
			want: Status{APIServiceIP: "10.96.7.7", Missing: []string{"service clusters-demo/kube-apiserver has no node port yet"}},
		},
		"When the API is not published it should be reached at the cluster IP": {
			hcp:  hcp(none),
			live: Live{API: service()},
			want: Status{APIHost: "10.96.7.7", APIPort: 6443, AdvertiseAddress: "10.96.7.7", AdvertisePort: 6443, APIServiceIP: "10.96.7.7"}, ready: true,
		},
		"When the user asks for an address it should advertise that": {
			hcp: hcp(loadBalancer, func(h *hyperv1.HostedControlPlane) {
				h.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("172.20.9.9"), Port: ptr.To[int32](7443)}
			}),
			live: Live{API: service(ingress(corev1.LoadBalancerIngress{IP: "10.97.0.3"}))},
			want: Status{APIHost: "10.97.0.3", APIPort: 6443, AdvertiseAddress: "172.20.9.9", AdvertisePort: 7443, NodeProxy: true, APIServiceIP: "10.96.7.7"}, ready: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := StatusOf(tc.hcp, tc.live)
			g.Expect(got).To(Equal(tc.want))
			g.Expect(got.Ready()).To(Equal(tc.ready))
		})
	}
}

func TestAdvertised(t *testing.T) {
	t.Run("When the user asks for the published address itself nodes should not own it", func(t *testing.T) {
		g := NewWithT(t)
		networking := &hyperv1.ClusterNetworking{APIServer: &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("10.97.0.3")}}
		address, port, proxy := Advertised(networking, "10.97.0.3", 30443)
		g.Expect(address).To(Equal("10.97.0.3"))
		g.Expect(port).To(BeEquivalentTo(30443))
		g.Expect(proxy).To(BeFalse())
	})
	for name, tc := range map[string]struct {
		cidr, host string
		want       string
		proxy      bool
	}{
		"When the host is a usable IP it should be advertised":                        {"172.31.0.0/16", "10.97.0.1", "10.97.0.1", false},
		"When the host is a loopback address it should not, endpoints refuse those":   {"172.31.0.0/16", "127.0.0.1", "172.20.0.1", true},
		"When the host is a link-local address it should not":                         {"172.31.0.0/16", "169.254.1.1", "172.20.0.1", true},
		"When the host is of another family than the Service it should not":           {"172.31.0.0/16", "fd12::1", "172.20.0.1", true},
		"When the cluster is IPv6 and the host a name it should use the IPv6 default": {"fd01::/112", "api.example.com", "fd00::1", true},
		"When the cluster is IPv6 and so is the host it should be advertised":         {"fd01::/112", "fd12::1", "fd12::1", false},
		"When the service network cannot be read it should assume IPv4":               {"x", "", "172.20.0.1", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			networking := &hyperv1.ClusterNetworking{ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: hyperv1.CIDRBlock(tc.cidr)}}}
			address, _, proxy := Advertised(networking, tc.host, 6443)
			g.Expect(address).To(Equal(tc.want))
			g.Expect(proxy).To(Equal(tc.proxy))
		})
	}
}

func TestServices(t *testing.T) {
	for name, tc := range map[string]struct {
		hcp  *hyperv1.HostedControlPlane
		want func(*corev1.Service)
	}{
		"When published by load balancer it should restrict the sources, sorted": {
			hcp: hcp(named, func(h *hyperv1.HostedControlPlane) {
				h.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AllowedCIDRBlocks: []hyperv1.CIDRBlock{"10.9.0.0/16", "10.1.0.0/16"}}
			}),
			want: func(s *corev1.Service) {
				s.Spec.Type = corev1.ServiceTypeLoadBalancer
				s.Spec.LoadBalancerSourceRanges = []string{"10.1.0.0/16", "10.9.0.0/16"}
				s.Annotations = map[string]string{"external-dns.alpha.kubernetes.io/hostname": "api.example.com"}
			},
		},
		"When published by node port it should ask for the port": {
			hcp: hcp(nodePort),
			want: func(s *corev1.Service) {
				s.Spec.Type = corev1.ServiceTypeNodePort
				s.Spec.Ports[0].NodePort = 30443
			},
		},
		"When not published it should be a ClusterIP": {hcp: hcp(none), want: func(*corev1.Service) {}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			want := apiService(hcp(none))
			tc.want(want)
			g.Expect(Services(tc.hcp)).To(Equal([]*corev1.Service{want}))
			g.Expect(want.Spec.Selector).To(Equal(map[string]string{"app": "kube-apiserver", "hypershift.openshift.io/control-plane-component": "kube-apiserver"}))
		})
	}
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		hcp  *hyperv1.HostedControlPlane
		can  Capabilities
		want string
	}{
		"When published by load balancer it should be fine": {hcp: hcp(loadBalancer)},
		"When published by node port it should be fine":     {hcp: hcp(nodePort)},
		"When not published it should be fine":              {hcp: hcp(none)},
		"When a Route is asked for without the kind it should say what to use": {
			hcp: hcp(route), want: "service APIServer is published by Route, but the management cluster does not serve route.openshift.io; use LoadBalancer or NodePort in spec.services",
		},
		"When another service asks for a Route without the kind it should name that service": {
			hcp: hcp(loadBalancer, func(h *hyperv1.HostedControlPlane) {
				h.Spec.Services = append(h.Spec.Services, hyperv1.ServicePublishingStrategyMapping{Service: hyperv1.Ignition, ServicePublishingStrategy: route})
			}),
			want: "service Ignition is published by Route, but the management cluster does not serve route.openshift.io; use LoadBalancer or NodePort in spec.services",
		},
		"When the API is published by Route without a name it should ask for one": {
			hcp: hcp(route), can: Capabilities{Routes: true},
			want: "service APIServer is published by Route without a name; set servicePublishingStrategy.route.hostname",
		},
		"When Routes have names it should leave it to the release, whatever the management cluster serves": {hcp: hcp(namedRoute("api.example.com"))},
		"When nothing is said it should say what is missing": {
			hcp:  hcp(loadBalancer, func(h *hyperv1.HostedControlPlane) { h.Spec.Services = nil }),
			want: "spec.services does not say how APIServer is published; use LoadBalancer or NodePort",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := Validate(tc.hcp, tc.can)
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(tc.want))
		})
	}
}

func TestWarnings(t *testing.T) {
	g := NewWithT(t)
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	event := func(name string, minute int, message string) corev1.Event {
		return corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}, Reason: "R", Message: message, LastTimestamp: metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))}
	}
	g.Expect(warnings([]corev1.Event{event("a", 1, "one"), event("b", 3, "three"), event("c", 4, "three"), event("d", 2, "two"), event("e", 0, "zero")})).
		To(Equal([]string{"R: three", "R: two", "R: one"}))
}
