package endpoints

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func namedRoute(host string) hyperv1.ServicePublishingStrategy {
	return hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: hyperv1.PublishedHostname(host)}}
}

// services publishes API, OAuth, the tunnel and ignition, in this order.
func services(strategies ...hyperv1.ServicePublishingStrategy) func(*hyperv1.HostedControlPlane) {
	return func(h *hyperv1.HostedControlPlane) {
		h.Spec.Services = nil
		for i, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
			if i < len(strategies) {
				h.Spec.Services = append(h.Spec.Services, hyperv1.ServicePublishingStrategyMapping{Service: service, ServicePublishingStrategy: strategies[i]})
			}
		}
	}
}

func onAWS(access hyperv1.AWSEndpointAccessType) func(*hyperv1.HostedControlPlane) {
	return func(h *hyperv1.HostedControlPlane) {
		h.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{EndpointAccess: access}}
	}
}

// Routings of the tests.
var (
	byManagement  = Routing{Kind: true, Public: true, IngressDomain: "apps.management.example.com"}
	byOwnRouter   = Routing{Kind: true, Public: true, Ours: true, OwnRouter: true}
	onPlain       = Routing{Public: true, Ours: true, OwnRouter: true}
	privateToo    = Routing{Kind: true, Public: true, Private: true, Ours: true, OwnRouter: true}
	privateToo2   = Routing{Kind: true, Public: true, Private: true, OwnRouter: true} // with a load balancer for the API
	privateOnly   = Routing{Kind: true, Private: true, Ours: true, OwnRouter: true}
	allNamed      = services(namedRoute("api.example.com"), namedRoute("oauth.example.com"), namedRoute("konnectivity.example.com"), namedRoute("ignition.example.com"))
	allButAPI     = services(loadBalancer, route, route, route)
	longNamespace = strings.Repeat("n", 55)
)

// told is a Route in a line.
func told(u *unstructured.Unstructured) string {
	host, _, _ := unstructured.NestedString(u.Object, "spec", "host")
	to, _, _ := unstructured.NestedString(u.Object, "spec", "to", "name")
	line := fmt.Sprintf("%s → %s", u.GetName(), to)
	if host != "" {
		line += " at " + host
	}
	for key, word := range map[string]string{RouterLabel: "ours"} {
		if v := u.GetLabels()[key]; v != "" {
			line += ", " + word + " " + v
		}
	}
	if u.GetLabels()[InternalRouteLabel] == "true" {
		line += ", internal"
	}
	if u.GetLabels()["hypershift.openshift.io/route-visibility"] == "private" {
		line += ", hidden"
	}
	return line
}

func TestRoutes(t *testing.T) {
	for name, tc := range map[string]struct {
		change  []func(*hyperv1.HostedControlPlane)
		routing Routing
		noOAuth bool
		want    []string
		deletes []string
	}{
		"When only the API has a load balancer the router of the management cluster should serve the rest, and choose names": {
			change: []func(*hyperv1.HostedControlPlane){allButAPI}, routing: byManagement,
			want:    []string{"oauth → oauth-openshift", "konnectivity-server → konnectivity-server"},
			deletes: []string{"kube-apiserver", "kube-apiserver-private", "kube-apiserver-internal", "oauth-private", "oauth-internal"},
		},
		"When the API is a Route its own router should serve all of them": {
			change: []func(*hyperv1.HostedControlPlane){allNamed}, routing: byOwnRouter,
			want: []string{
				"kube-apiserver → kube-apiserver at api.example.com, ours clusters-demo", "oauth → oauth-openshift at oauth.example.com, ours clusters-demo",
				"konnectivity-server → konnectivity-server at konnectivity.example.com, ours clusters-demo"},
			deletes: []string{"kube-apiserver-private", "kube-apiserver-internal", "oauth-private", "oauth-internal"},
		},
		"When it is public and private it should have both names, and nodes the private one": {
			change: []func(*hyperv1.HostedControlPlane){allNamed}, routing: privateToo,
			want: []string{
				"kube-apiserver → kube-apiserver at api.example.com, ours clusters-demo",
				"kube-apiserver-internal → kube-apiserver at api.demo.hypershift.local, ours clusters-demo, internal",
				"oauth → oauth-openshift at oauth.example.com, ours clusters-demo",
				"oauth-internal → oauth-openshift at oauth.apps.demo.hypershift.local, ours clusters-demo, internal",
				"konnectivity-server → konnectivity-server at konnectivity-server.apps.demo.hypershift.local, ours clusters-demo, internal"},
			deletes: []string{"kube-apiserver-private", "oauth-private"},
		},
		"When it is both and the API has a load balancer the external Route should be the management cluster's": {
			change: []func(*hyperv1.HostedControlPlane){allButAPI}, routing: privateToo2,
			want: []string{
				"oauth → oauth-openshift", "oauth-internal → oauth-openshift at oauth.apps.demo.hypershift.local, ours clusters-demo, internal",
				"konnectivity-server → konnectivity-server at konnectivity-server.apps.demo.hypershift.local, ours clusters-demo, internal"},
			deletes: []string{"kube-apiserver", "kube-apiserver-private", "kube-apiserver-internal", "oauth-private"},
		},
		"When it is private its names should have no public records": {
			change: []func(*hyperv1.HostedControlPlane){allNamed}, routing: privateOnly,
			want: []string{
				"kube-apiserver-private → kube-apiserver at api.example.com, ours clusters-demo, hidden",
				"kube-apiserver-internal → kube-apiserver at api.demo.hypershift.local, ours clusters-demo, internal",
				"oauth-private → oauth-openshift at oauth.example.com, ours clusters-demo, hidden",
				"oauth-internal → oauth-openshift at oauth.apps.demo.hypershift.local, ours clusters-demo, internal",
				"konnectivity-server → konnectivity-server at konnectivity-server.apps.demo.hypershift.local, ours clusters-demo, internal"},
			deletes: []string{"kube-apiserver", "oauth"},
		},
		"When there is no OAuth server it should have no Route": {
			change: []func(*hyperv1.HostedControlPlane){allButAPI}, routing: byManagement, noOAuth: true,
			want:    []string{"konnectivity-server → konnectivity-server"},
			deletes: []string{"kube-apiserver", "kube-apiserver-private", "kube-apiserver-internal", "oauth", "oauth-private", "oauth-internal"},
		},
		"When the router's own name would be too long it should be shortened": {
			change:  []func(*hyperv1.HostedControlPlane){allButAPI, func(h *hyperv1.HostedControlPlane) { h.Namespace = longNamespace }},
			routing: byManagement, noOAuth: true,
			want:    []string{"konnectivity-server → konnectivity-server at konnectivity-server-" + strings.Repeat("n", 34) + "-83739ef1.apps.management.example.com"},
			deletes: []string{"kube-apiserver", "kube-apiserver-private", "kube-apiserver-internal", "oauth", "oauth-private", "oauth-internal"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plan := Routes(hcp(loadBalancer, tc.change...), tc.routing, !tc.noOAuth)
			var got []string
			for _, r := range plan.Apply {
				got = append(got, told(r))
				tls, _, _ := unstructured.NestedStringMap(r.Object, "spec", "tls")
				g.Expect(tls).To(Equal(map[string]string{"termination": "passthrough", "insecureEdgeTerminationPolicy": "None"}))
				g.Expect(r.GetAnnotations()).NotTo(HaveKey(externalDNSAnnotation))
				host, _, _ := unstructured.NestedString(r.Object, "spec", "host")
				first, _, _ := strings.Cut(host, ".")
				g.Expect(len(first)).To(BeNumerically("<=", 63))
			}
			g.Expect(got).To(Equal(tc.want))
			g.Expect(plan.Delete).To(Equal(tc.deletes))
		})
	}
}

func TestRouterServices(t *testing.T) {
	for name, tc := range map[string]struct {
		change  []func(*hyperv1.HostedControlPlane)
		routing Routing
		want    map[string]map[string]string // annotations by name
	}{
		"When the management cluster's router serves Routes there should be none": {change: []func(*hyperv1.HostedControlPlane){allButAPI}, routing: byManagement, want: map[string]map[string]string{}},
		"When there are no Routes to go by external-dns should learn the names from the Service": {change: []func(*hyperv1.HostedControlPlane){allNamed}, routing: onPlain,
			want: map[string]map[string]string{"router": {"external-dns.alpha.kubernetes.io/hostname": "api.example.com,ignition.example.com,konnectivity.example.com,oauth.example.com"}}},
		"When it is on AWS it should be a network load balancer": {change: []func(*hyperv1.HostedControlPlane){allNamed, onAWS(hyperv1.Public)}, routing: byOwnRouter,
			want: map[string]map[string]string{"router": {"service.beta.kubernetes.io/aws-load-balancer-type": "nlb", "service.beta.kubernetes.io/aws-load-balancer-scheme": "internet-facing"}}},
		"When it is private on AWS it should be an internal one across zones": {
			change: []func(*hyperv1.HostedControlPlane){allNamed, onAWS(hyperv1.Private), func(h *hyperv1.HostedControlPlane) {
				h.Annotations = map[string]string{hyperv1.AWSLoadBalancerTargetNodesAnnotation: "router=yes"}
			}}, routing: privateOnly,
			want: map[string]map[string]string{"private-router": {"service.beta.kubernetes.io/aws-load-balancer-type": "nlb", "service.beta.kubernetes.io/aws-load-balancer-internal": "true",
				"service.beta.kubernetes.io/aws-load-balancer-cross-zone-load-balancing-enabled": "true", "service.beta.kubernetes.io/aws-load-balancer-attributes": "load_balancing.cross_zone.enabled=true",
				"service.beta.kubernetes.io/aws-load-balancer-target-node-labels": "router=yes"}}},
		"When the API of a private cluster has a load balancer it should be another Service": {change: []func(*hyperv1.HostedControlPlane){allButAPI, onAWS(hyperv1.PublicAndPrivate)}, routing: privateToo2,
			want: map[string]map[string]string{
				"private-router": {"service.beta.kubernetes.io/aws-load-balancer-type": "nlb", "service.beta.kubernetes.io/aws-load-balancer-internal": "true",
					"service.beta.kubernetes.io/aws-load-balancer-cross-zone-load-balancing-enabled": "true", "service.beta.kubernetes.io/aws-load-balancer-attributes": "load_balancing.cross_zone.enabled=true"},
				"kube-apiserver-private": {"service.beta.kubernetes.io/aws-load-balancer-type": "nlb", "service.beta.kubernetes.io/aws-load-balancer-internal": "true",
					"service.beta.kubernetes.io/aws-load-balancer-cross-zone-load-balancing-enabled": "true", "service.beta.kubernetes.io/aws-load-balancer-attributes": "load_balancing.cross_zone.enabled=true"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plan := RouterServices(hcp(loadBalancer, tc.change...), tc.routing, true)
			got := map[string]map[string]string{}
			for _, svc := range plan.Apply {
				got[svc.Name] = svc.Annotations
				g.Expect(svc.Spec.Type).To(Equal(corev1.ServiceTypeLoadBalancer))
			}
			g.Expect(got).To(Equal(tc.want))
			g.Expect(len(plan.Apply) + len(plan.Delete)).To(Equal(3))
		})
	}
}

func TestStatusOfRoutes(t *testing.T) {
	router := service(ingress(corev1.LoadBalancerIngress{IP: "10.97.0.8"}))
	aggregatedIPs := map[string]string{OpenShiftAPIServiceName: "10.96.0.1", OAuthAPIServiceName: "10.96.0.2", PackageServerServiceName: "10.96.0.3"}
	tunnel := service()
	for name, tc := range map[string]struct {
		change  []func(*hyperv1.HostedControlPlane)
		live    Payload
		want    [5]string // API, OAuth, tunnel, ignition, external router
		missing []string
	}{
		"When Routes have names it should be those, as soon as the router has an address": {change: []func(*hyperv1.HostedControlPlane){allNamed}, live: Payload{Routing: onPlain, Router: router},
			want: [5]string{"api.example.com:443", "oauth.example.com:443", "konnectivity.example.com:443", "ignition.example.com", "10.97.0.8"}},
		"When the router has no address it should wait": {change: []func(*hyperv1.HostedControlPlane){allNamed}, live: Payload{Routing: onPlain, RouterWarnings: []string{"no quota"}},
			want:    [5]string{"api.example.com:443", "oauth.example.com:443", "konnectivity.example.com:443", "ignition.example.com", ""},
			missing: []string{"load balancer of service clusters-demo/router has no address yet: no quota"}},
		"When a router has chosen names it should be those": {change: []func(*hyperv1.HostedControlPlane){allButAPI}, live: Payload{Routing: byManagement,
			Routes: map[string]LiveRoute{"oauth": {"oauth-clusters-demo.apps.example.com"}, "konnectivity-server": {"k.apps.example.com"}, "ignition-server": {"i.apps.example.com"}}},
			want: [5]string{"10.97.0.3:6443", "oauth-clusters-demo.apps.example.com:443", "k.apps.example.com:443", "i.apps.example.com", ""}},
		"When a Route has no name yet it should wait for it": {change: []func(*hyperv1.HostedControlPlane){allButAPI}, live: Payload{Routing: byManagement},
			want: [5]string{"10.97.0.3:6443", ":0", ":0", "", ""}, missing: []string{"route clusters-demo/konnectivity-server has no host yet", "route clusters-demo/oauth has no host yet"}},
		"When it is private users should come by the private names": {change: []func(*hyperv1.HostedControlPlane){services(route, route, route, route)}, live: Payload{Routing: privateOnly, PrivateRouter: router},
			want: [5]string{"10.97.0.8:443", "oauth.apps.demo.hypershift.local:443", "konnectivity-server.apps.demo.hypershift.local:443", "ignition-server.apps.demo.hypershift.local", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			tc.live.OAuth, tc.live.Aggregated, tc.live.OAuthService = true, aggregatedIPs, service()
			s := StatusOf(hcp(loadBalancer, tc.change...), Live{API: service(ingress(corev1.LoadBalancerIngress{IP: "10.97.0.3"})), Konnectivity: tunnel, Payload: &tc.live})
			g.Expect([5]string{fmt.Sprintf("%s:%d", s.APIHost, s.APIPort), fmt.Sprintf("%s:%d", s.OAuthHost, s.OAuthPort), fmt.Sprintf("%s:%d", s.KonnectivityHost, s.KonnectivityPort), s.IgnitionHost, s.ExternalRouterHost}).To(Equal(tc.want))
			g.Expect(s.Missing).To(Equal(tc.missing))
			g.Expect(s.Ready()).To(Equal(tc.missing == nil))
		})
	}
}

func TestValidateRoutes(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*hyperv1.HostedControlPlane)
		routing Routing
		want    string
	}{
		"When the management cluster serves Routes anything should do":                  {change: allButAPI, routing: byManagement},
		"When it does not and everything has a name the own router should do":           {change: allNamed, routing: onPlain},
		"When it does not and one has no name it should ask for that":                   {change: services(namedRoute("api.example.com"), route, nodePort, nodePort), routing: onPlain, want: "service OAuthServer is published by Route without a name, and the management cluster does not serve route.openshift.io"},
		"When there would be no router it should say how there is one":                  {change: services(loadBalancer, nodePort, nodePort, namedRoute("i.example.com")), routing: Routing{Public: true}, want: "service Ignition is published by Route, but the management cluster does not serve route.openshift.io, and the control plane has a router of its own only with a named APIServer"},
		"When it is private names should come by themselves, on any management cluster": {change: services(route, route, route, route), routing: Routing{Private: true, Ours: true, OwnRouter: true}},
	} {
		t.Run(name, func(t *testing.T) {
			err := ValidatePayload(hcp(loadBalancer, tc.change), tc.routing, true)
			if tc.want == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
	t.Run("When a release of Kubernetes is published by Route it should be refused", func(t *testing.T) {
		NewWithT(t).Expect(ValidateKubernetes(hcp(namedRoute("api.example.com")), Capabilities{Routes: true})).To(MatchError(ContainSubstring("releases of Kubernetes have no router")))
	})
}

func TestAdmission(t *testing.T) {
	noon := metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
	route := func(r Route) *unstructured.Unstructured { return r.object("clusters-demo") }
	for name, tc := range map[string]struct {
		route *unstructured.Unstructured
		want  string // canonical name; "": nothing is written
	}{
		"When it is another router's it should be left alone":          {route: route(Route{Name: "oauth", Host: "oauth.example.com"})},
		"When it has no name yet it should wait":                       {route: route(Route{Name: "oauth", Ours: true})},
		"When it is public it should lead to the public load balancer": {route: route(Route{Name: "oauth", Host: "oauth.example.com", Ours: true}), want: "lb.example.com"},
		"When it is internal it should lead to the private one":        {route: route(Route{Name: "x", Host: "x.apps.demo.hypershift.local", Ours: true, Internal: true}), want: "internal.example.com"},
		"When it is hidden it should lead to the private one, too":     {route: route(Route{Name: "x", Host: "x.example.com", Ours: true, Hidden: true}), want: "internal.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status, changed := Admission(tc.route, "lb.example.com", "internal.example.com", noon)
			g.Expect(changed).To(Equal(tc.want != ""))
			if tc.want == "" {
				return
			}
			host, _, _ := unstructured.NestedString(tc.route.Object, "spec", "host")
			g.Expect(status).To(Equal(map[string]any{"ingress": []any{map[string]any{"host": host, "routerName": "router", "routerCanonicalHostname": tc.want, "wildcardPolicy": "None",
				"conditions": []any{map[string]any{"type": "Admitted", "status": "True", "lastTransitionTime": "2026-01-02T12:00:00Z"}}}}}))
			tc.route.Object["status"] = status
			_, changed = Admission(tc.route, "lb.example.com", "internal.example.com", metav1.NewTime(noon.Add(time.Hour)))
			g.Expect(changed).To(BeFalse(), "a second time")
			_, changed = Admission(tc.route, "other.example.com", "other.example.com", noon)
			g.Expect(changed).To(BeTrue(), "another load balancer")
		})
	}
}
