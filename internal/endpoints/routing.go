package endpoints

import (
	"fmt"
	"hash/fnv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/payload"
)

// RouteKind is the kind of Routes, which management clusters of OpenShift serve.
var RouteKind = schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"}

// Labels and annotations of Routes.
const (
	// RouterLabel has the control plane's own router serve a Route, and keeps the router of the management cluster away from it. Its value is the
	// namespace of the control plane.
	RouterLabel = "hypershift.openshift.io/hosted-control-plane"
	// InternalRouteLabel marks Routes whose names are known inside of the virtual network of the hosted cluster only.
	InternalRouteLabel = "hypershift.openshift.io/internal-route"
	// RouteStatusWriterAnnotation says who writes the status of a Route that the router of the management cluster leaves alone.
	RouteStatusWriterAnnotation = "hypershift.openshift.io/route-status-writer"
	// RouteStatusWriter is its value on those that this operator admits.
	RouteStatusWriter = "hcp-router"

	// balanceAnnotation has a router spread connections evenly: agents of the tunnel keep theirs for long.
	balanceAnnotation = "haproxy.router.openshift.io/balance"
)

// Names of Routes.
const (
	APIRouteName          = "kube-apiserver"
	APIPrivateRouteName   = "kube-apiserver-private"
	APIInternalRouteName  = "kube-apiserver-internal"
	OAuthRouteName        = "oauth"
	OAuthPrivateRouteName = "oauth-private"
	OAuthInternalName     = "oauth-internal"
	KonnectivityRouteName = "konnectivity-server"
	IgnitionRouteName     = "ignition-server"
	MetricsProxyRouteName = "metrics-proxy"
)

// Routing says who serves the Routes of a control plane, and from where they are reached. The zero value is a control plane that nothing serves Routes of.
type Routing struct {
	// Kind: the management cluster serves route.openshift.io. Without it the control plane's own router goes by what the Routes would be.
	Kind bool
	// Public and Private say whether the control plane is reached from the internet, and from the virtual network of the hosted cluster. Either or both.
	Public, Private bool
	// Ours: external Routes are served by the control plane's own router, and not by that of the management cluster.
	Ours bool
	// OwnRouter: the control plane has a router of its own.
	OwnRouter bool
	// SharedIngress: a router of the installation serves what is ours and public.
	SharedIngress bool
	// IngressDomain is the DNS domain of the management cluster's router; empty: not known.
	IngressDomain string
}

// publicRouter says whether the own router is reached from the internet.
func (r Routing) publicRouter() bool { return r.OwnRouter && r.Public && r.Ours }

// privateRouter says whether it is reached from the virtual network of the hosted cluster.
func (r Routing) privateRouter() bool { return r.OwnRouter && r.Private }

// Route is what there is to say about a Route.
type Route struct {
	Name, Service string
	// Host is its name. Empty: the router of the management cluster chooses one.
	Host string
	// Ours: the control plane's own router serves it.
	Ours bool
	// Internal: its name is known in the virtual network only. Hidden: it has a name of the user's, and no public DNS record.
	Internal, Hidden bool
	// Balance spreads connections evenly.
	Balance bool
}

// InternalRouteHost is the name of a Route inside of the virtual network.
func InternalRouteHost(route, hcpName string) string {
	if route == APIInternalRouteName {
		return "api." + hcpName + internalDomain
	}
	return strings.TrimSuffix(route, "-internal") + ".apps." + hcpName + internalDomain
}

const internalDomain = ".hypershift.local"

// MetricsRouteHost is the name by which the hosted cluster reaches the metrics of the control plane, beside that of the ignition server; empty where
// the router of the management cluster chooses one.
func MetricsRouteHost(hcp *hyperv1.HostedControlPlane) string {
	if payload.Private(hcp) {
		return InternalRouteHost(MetricsProxyRouteName, hcp.Name)
	}
	if s := StrategyFor(hcp, hyperv1.Ignition); s != nil && s.Route != nil {
		if _, domain, ok := strings.Cut(string(s.Route.Hostname), "."); ok {
			return MetricsProxyRouteName + "-" + hcp.Name + "." + domain
		}
	}
	return ""
}

// maxLabel is how long a label of a DNS name may be.
const maxLabel = 63

// ExternalRouteHost is the name of a Route that is published: the user's, or none, for the router of the management cluster to choose, or one that is
// shortened where the router's own would be too long for DNS.
func ExternalRouteHost(route, namespace, asked, ingressDomain string) string {
	if asked != "" || ingressDomain == "" || len(route)+1+len(namespace) < maxLabel {
		return asked
	}
	name := route + "-" + namespace
	if len(name) > maxLabel {
		h := fnv.New32a()
		_, _ = h.Write([]byte(name))
		const hashed = 9 // a dash and eight digits
		name = fmt.Sprintf("%s-%08x", strings.TrimRight(name[:maxLabel-hashed], "-."), h.Sum32())
	}
	return strings.TrimRight(name, "-") + "." + ingressDomain
}

// routes are the Routes that publish the API, OAuth and the tunnel, in the order of the services. Those of the ignition server and of the metrics belong to
// components.
func routes(hcp *hyperv1.HostedControlPlane, r Routing, oauth bool) (list []Route) {
	list = append(list, published(hcp, r, hyperv1.APIServer, names.KubeAPIServer, [3]string{APIRouteName, APIPrivateRouteName, APIInternalRouteName})...)
	if oauth {
		list = append(list, published(hcp, r, hyperv1.OAuthServer, OAuthServiceName, [3]string{OAuthRouteName, OAuthPrivateRouteName, OAuthInternalName})...)
	}
	if byRoute(hcp, hyperv1.Konnectivity) {
		route := single(hcp, r, hyperv1.Konnectivity, KonnectivityRouteName, KonnectivityServiceName)
		route.Balance = true
		list = append(list, route)
	}
	return list
}

// published are the Routes of a service that is reached by users: under a public name, or a hidden one of the user's where there is no public way, and
// an internal one. names are those of the three.
func published(hcp *hyperv1.HostedControlPlane, r Routing, service hyperv1.ServiceType, target string, names [3]string) (list []Route) {
	if !byRoute(hcp, service) {
		return nil
	}
	asked := routeHostname(hcp, service)
	switch {
	case r.Public:
		list = append(list, Route{Name: names[0], Service: target, Host: ExternalRouteHost(names[0], hcp.Namespace, asked, r.IngressDomain), Ours: r.Ours})
	case asked != "":
		list = append(list, Route{Name: names[1], Service: target, Host: asked, Ours: true, Hidden: true})
	}
	if r.Private {
		list = append(list, Route{Name: names[2], Service: target, Host: InternalRouteHost(names[2], hcp.Name), Ours: true, Internal: true})
	}
	return list
}

// single is the Route of a service that nodes reach, by one way only.
func single(hcp *hyperv1.HostedControlPlane, r Routing, service hyperv1.ServiceType, name, target string) Route {
	if r.Private {
		return Route{Name: name, Service: target, Host: InternalRouteHost(name, hcp.Name), Ours: true, Internal: true}
	}
	return Route{Name: name, Service: target, Host: ExternalRouteHost(name, hcp.Namespace, routeHostname(hcp, service), r.IngressDomain), Ours: r.Ours}
}

// PlannedRoutes are all Routes of a control plane, those of its components among them, for a router that finds no Routes to go by. metricsHost is the
// name of the metrics' Route; empty: there is none.
func PlannedRoutes(hcp *hyperv1.HostedControlPlane, r Routing, oauth bool, ignitionService, metricsHost string) []Route {
	list := routes(hcp, r, oauth)
	if byRoute(hcp, hyperv1.Ignition) {
		list = append(list, single(hcp, r, hyperv1.Ignition, IgnitionRouteName, ignitionService))
	}
	if metricsHost != "" {
		list = append(list, Route{Name: MetricsProxyRouteName, Service: MetricsProxyRouteName, Host: metricsHost, Ours: r.Ours || r.Private, Internal: r.Private})
	}
	return list
}

func byRoute(hcp *hyperv1.HostedControlPlane, service hyperv1.ServiceType) bool {
	s := StrategyFor(hcp, service)
	return s != nil && s.Type == hyperv1.Route
}

// routeHostname is the name that the user gave a Route; empty when he gave none.
func routeHostname(hcp *hyperv1.HostedControlPlane, service hyperv1.ServiceType) string {
	if s := StrategyFor(hcp, service); s != nil && s.Type == hyperv1.Route && s.Route != nil {
		return string(s.Route.Hostname)
	}
	return ""
}

// object is the Route as it is applied. TLS is passed through: what is behind it has the certificates.
func (r Route) object(namespace string) *unstructured.Unstructured {
	spec := map[string]any{
		"to":  map[string]any{"kind": "Service", "name": r.Service},
		"tls": map[string]any{"termination": "passthrough", "insecureEdgeTerminationPolicy": "None"},
	}
	if r.Host != "" {
		spec["host"] = r.Host
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(RouteKind)
	u.SetNamespace(namespace)
	u.SetName(r.Name)
	labels := map[string]string{}
	if r.Ours {
		labels[RouterLabel] = namespace
	}
	if r.Internal {
		labels[InternalRouteLabel] = "true"
	}
	if r.Hidden {
		labels[hyperv1.RouteVisibilityLabel] = hyperv1.RouteVisibilityPrivate
	}
	if len(labels) > 0 {
		u.SetLabels(labels)
	}
	if r.Balance {
		u.SetAnnotations(map[string]string{balanceAnnotation: "roundrobin"})
	}
	return u
}

// RoutePlan is what becomes of the Routes that are not components' own.
type RoutePlan struct {
	Apply []*unstructured.Unstructured
	// Delete are the names of those that must not exist.
	Delete []string
}

// Routes are the Routes to make, and those to remove. The management cluster must serve them.
func Routes(hcp *hyperv1.HostedControlPlane, r Routing, oauth bool) RoutePlan {
	var plan RoutePlan
	wanted := map[string]bool{}
	for _, route := range routes(hcp, r, oauth) {
		plan.Apply = append(plan.Apply, route.object(hcp.Namespace))
		wanted[route.Name] = true
	}
	for _, name := range []string{APIRouteName, APIPrivateRouteName, APIInternalRouteName, OAuthRouteName, OAuthPrivateRouteName, OAuthInternalName, KonnectivityRouteName} {
		if !wanted[name] {
			plan.Delete = append(plan.Delete, name)
		}
	}
	return plan
}

// LiveRoute is what counts of a Route that exists.
type LiveRoute struct {
	// Host is its name, as asked for or as its router chose it.
	Host string
}

// Admission is the status that a Route of the control plane's own router gets, and whether it is another than the present one. Nobody else admits them.
// The canonical names are those of the router's load balancers; a Route waits for the one that it is reached by, and for its own name.
func Admission(route *unstructured.Unstructured, externalRouter, internalRouter string, now metav1.Time) (status map[string]any, changed bool) {
	labels := route.GetLabels()
	canonical := externalRouter
	if labels[InternalRouteLabel] != "" || labels[hyperv1.RouteVisibilityLabel] == hyperv1.RouteVisibilityPrivate {
		canonical = internalRouter
	}
	host, _, _ := unstructured.NestedString(route.Object, "spec", "host")
	if _, ours := labels[RouterLabel]; !ours || host == "" || canonical == "" {
		return nil, false
	}
	present, _, _ := unstructured.NestedSlice(route.Object, "status", "ingress")
	if len(present) == 1 && admitted(present[0], host, canonical) {
		return nil, false
	}
	return map[string]any{"ingress": []any{map[string]any{
		"host": host, "routerName": "router", "routerCanonicalHostname": canonical, "wildcardPolicy": "None",
		"conditions": []any{map[string]any{"type": "Admitted", "status": "True", "lastTransitionTime": now.UTC().Format("2006-01-02T15:04:05Z")}},
	}}}, true
}

// AdmittedHost is the name at which a router serves a Route; empty while none has admitted it.
func AdmittedHost(route *unstructured.Unstructured) string {
	entries, _, _ := unstructured.NestedSlice(route.Object, "status", "ingress")
	for _, entry := range entries {
		ingress, _ := entry.(map[string]any)
		host, _ := ingress["host"].(string)
		conditions, _ := ingress["conditions"].([]any)
		for _, c := range conditions {
			if condition, _ := c.(map[string]any); host != "" && condition["type"] == "Admitted" && condition["status"] == "True" {
				return host
			}
		}
	}
	return ""
}

// admitted says whether an entry of a Route's status is what Admission makes.
func admitted(entry any, host, canonical string) bool {
	ingress, _ := entry.(map[string]any)
	conditions, _ := ingress["conditions"].([]any)
	if ingress["host"] != host || ingress["routerCanonicalHostname"] != canonical || ingress["routerName"] != "router" || len(conditions) != 1 {
		return false
	}
	condition, _ := conditions[0].(map[string]any)
	return condition["type"] == "Admitted" && condition["status"] == "True"
}
