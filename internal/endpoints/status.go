package endpoints

// Ports that are the same in every hosted cluster.
const (
	// InternalAPIPort is the port of Service kube-apiserver inside the control plane namespace, also when the API is published
	// by a LoadBalancer.
	InternalAPIPort int32 = 6443
	// RoutePort is where the front of a Route listens: TLS is passed through by host name.
	RoutePort int32 = 443
	// KonnectivityPort is where agents reach the tunnel server.
	KonnectivityPort int32 = 8091
	// KonnectivityLocalPort is where kube-apiserver and others in the control plane namespace reach it.
	KonnectivityLocalPort int32 = 8090
)

// Status is what is known about the published endpoints of a hosted cluster. It never holds a guess: a field is empty until the
// management cluster assigned the address.
type Status struct {
	// APIHost is the DNS name or IP (unbracketed) at which users and nodes reach the hosted API. APIPort goes with it.
	APIHost string
	APIPort int32

	// AdvertiseAddress is an IP: what kube-apiserver is told with --advertise-address and what Service default/kubernetes of the
	// hosted cluster points to, together with AdvertisePort.
	AdvertiseAddress string
	AdvertisePort    int32
	// NodeProxy is true when AdvertiseAddress is not reachable by itself: every node must own it and forward connections to
	// APIHost:APIPort. It is false when the address is that of the published endpoint.
	NodeProxy bool

	// KonnectivityHost and KonnectivityPort are where agents of the hosted cluster reach the tunnel server. Empty when
	// spec.services publishes none, which is no reason to wait.
	KonnectivityHost string
	KonnectivityPort int32

	// OAuthHost and OAuthPort are where users of the hosted cluster log in. Empty unless an OpenShift payload publishes it.
	OAuthHost string
	OAuthPort int32
	// OpenShiftAPIHost, OAuthAPIServerHost and PackageServerAPIAddress are the ClusterIPs of the Services openshift-apiserver,
	// openshift-oauth-apiserver and packageserver, which serve parts of the hosted API. Empty: the Services say.
	OpenShiftAPIHost, OAuthAPIServerHost, PackageServerAPIAddress string

	// ExternalRouterHost and InternalRouterHost are where the load balancers of the control plane's own router are reached. Empty where there is no such.
	ExternalRouterHost, InternalRouterHost string
	// IgnitionHost and MetricsHost are where machines reach the ignition server, and the hosted cluster the metrics, as far as Routes say it.
	IgnitionHost, MetricsHost string

	// APIServiceIP is the ClusterIP of Service kube-apiserver. Empty until it is assigned.
	APIServiceIP string

	// Missing says what is waited for, one sentence per endpoint; empty when everything that is published has its address.
	Missing []string
}

// Ready reports whether the control plane can be configured: the API server's address is known, because it goes into its serving
// certificate and flags.
func (s Status) Ready() bool {
	return s.APIHost != "" && s.APIPort != 0 && s.AdvertiseAddress != "" && len(s.Missing) == 0
}
