package pki

// Payload is what the certificates of an OpenShift payload's components depend on, beside the rest of a Spec.
type Payload struct {
	// OAuth says whether there is an OAuth server, whose certificates components trust by ConfigMap OAuthCABundle.
	OAuth bool
	// IngressAuthority also trusts the authority of the hosted cluster's default ingress, as soon as it is known.
	IngressAuthority bool
	// OAuthHost is where users log in. Optional: its certificate waits for it.
	OAuthHost string
	// AppsDomain is the domain of Routes in the hosted cluster. Optional.
	AppsDomain string
	// MetricsForwarding is true where the metrics of the control plane are offered to the hosted cluster, and MetricsHost is where. The host is optional.
	MetricsForwarding bool
	MetricsHost       string
}

// Secrets of what forwards metrics: each of its two servers has an authority of its own.
const (
	EndpointResolverCA      = "endpoint-resolver-ca"
	EndpointResolverServing = "endpoint-resolver-serving-cert"
	MetricsProxyCA          = "metrics-proxy-ca-cert"
	MetricsProxyServing     = "metrics-proxy-serving-cert"
)

// OAuthCABundle is the ConfigMap (key CACertKey) with what an OAuth server's certificates are signed with.
const OAuthCABundle = "oauth-master-ca-bundle"

// observedIngressCA is the ConfigMap (key CACertKey) in which the hosted-cluster-config-operator notes the authority of the hosted cluster's ingress.
const observedIngressCA = "observed-default-ingress-cert"

// AuthenticatorClient is the certificate by which kube-apiserver asks the OAuth API server whose a token is.
const AuthenticatorClient = "openshift-authenticator-cert"

// payloadServices are serving certificates by their Secret: the common name, and the Service whose names it is valid for.
var payloadServices = []struct{ secret, name, service string }{
	{"openshift-apiserver-cert", "openshift-apiserver", "openshift-apiserver"},
	{"openshift-oauth-apiserver-cert", "openshift-oauth-apiserver", "openshift-oauth-apiserver"},
	{"packageserver-cert", "packageserver", "packageserver"},
	{"cvo-server", "cluster-version-operator", "cluster-version-operator"},
	{"openshift-controller-manager-cert", "openshift-controller-manager", "openshift-controller-manager"},
	{"openshift-route-controller-manager-cert", "openshift-controller-manager", "openshift-controller-manager"},
	{"cluster-policy-controller-cert", "openshift-controller-manager", "openshift-controller-manager"},
	{"node-tuning-operator-tls", "node-tuning-operator", "node-tuning-operator"},
	{"catalog-operator-serving-cert", "catalog-operator-metrics", "catalog-operator-metrics"},
	{"olm-operator-serving-cert", "olm-operator-metrics", "olm-operator-metrics"},
	{"cluster-image-registry-operator", "cluster-image-registry-operator", "cluster-image-registry-operator"},
	{"cluster-storage-operator-serving-cert", "cluster-storage-operator", "cluster-storage-operator"},
	{"ignition-server", "ignition-server", "ignition-server"}, // behind its proxy
	{"csi-snapshot-controller-operator-serving-cert", "csi-snapshot-controller-operator", "csi-snapshot-controller-operator"},
}

// aggregated are the Services that also exist in the hosted cluster, in its namespace default.
var aggregated = map[string]bool{"openshift-apiserver": true, "openshift-oauth-apiserver": true, "packageserver": true}

// payloadLeaves are the certificates that an OpenShift payload needs beside those of every control plane.
func (s Spec) payloadLeaves() []leaf {
	if s.Payload == nil {
		return nil
	}
	openshift := []string{"openshift"}
	all := []leaf{
		{secret: AuthenticatorClient, signer: ClusterSigner, name: "system:serviceaccount:openshift-oauth-apiserver:openshift-authenticator", orgs: openshift, usages: clientAuth},
		leaf{secret: "mcs-crt", signer: RootCA, name: "machine-config-server", orgs: openshift, usages: serverAuth}.
			withHosts("*.machine-config-server." + s.Namespace + ".svc.cluster.local"),
	}
	for _, webhook := range []string{"aws-pod-identity-webhook", "azure-workload-identity-webhook"} {
		all = append(all, leaf{secret: webhook + "-serving-cert", signer: RootCA, name: "127.0.0.1", usages: bothAuth}.withHosts("127.0.0.1"))
	}
	for _, p := range payloadServices {
		hosts := append(s.serviceNames(p.service), "localhost")
		if aggregated[p.service] {
			hosts = append(hosts, p.service+".default.svc", p.service+".default.svc.cluster.local")
		}
		all = append(all, leaf{secret: p.secret, signer: RootCA, name: p.name, orgs: openshift, usages: bothAuth}.withHosts(hosts...))
	}
	if s.Payload.MetricsForwarding {
		all = append(all,
			leaf{secret: EndpointResolverServing, signer: EndpointResolverCA, name: "endpoint-resolver", orgs: openshift, usages: serverAuth}.withHosts(s.serviceNames("endpoint-resolver")...),
			leaf{secret: MetricsProxyServing, signer: MetricsProxyCA, name: "metrics-proxy", orgs: openshift, usages: serverAuth}.
				withHosts(append([]string{s.Payload.MetricsHost}, s.serviceNames("metrics-proxy")...)...))
	}
	if host := s.Payload.OAuthHost; host != "" {
		all = append(all, leaf{secret: "oauth-server-crt", signer: RootCA, name: "openshift-oauth", orgs: openshift, usages: bothAuth}.
			withHosts(host, "oauth-openshift."+s.Namespace+".svc.cluster.local"))
	}
	if domain := s.Payload.AppsDomain; domain != "" {
		all = append(all, leaf{secret: "ingress-crt", signer: RootCA, name: "openshift-ingress", orgs: openshift, usages: bothAuth}.withHosts("*."+domain))
	}
	return all
}

// payloadAuthorities are those that an OpenShift payload needs beside those of every control plane.
func (s Spec) payloadAuthorities() []authority {
	if s.Payload == nil || !s.Payload.MetricsForwarding {
		return nil
	}
	return []authority{{EndpointResolverCA, "endpoint-resolver-ca", authorityOrgUnit}, {MetricsProxyCA, "metrics-proxy-ca", authorityOrgUnit}}
}

// planPayloadBundles writes what an OpenShift payload trusts beside what every control plane does.
func (p *planner) planPayloadBundles() {
	if p.spec.Payload == nil || !p.spec.Payload.OAuth {
		return
	}
	trust := p.ingressAuthority()
	for _, name := range p.spec.NamedCertificates {
		if named := p.secrets[name]; named != nil {
			authority := OnlyCertificates(named.Data[CACertKey])
			if len(authority) == 0 {
				authority = OnlyCertificates(named.Data[TLSCertKey])
			}
			trust = append(trust, authority...)
		}
	}
	p.planBundle(OAuthCABundle, trust, RootCA)
}

// ingressAuthority is that of the hosted cluster's default ingress, as far as it is known.
func (p *planner) ingressAuthority() []byte {
	if p.spec.Payload == nil || !p.spec.Payload.IngressAuthority {
		return nil
	}
	cm := p.configMaps[observedIngressCA]
	if cm == nil {
		return nil
	}
	return OnlyCertificates([]byte(cm.Data[CACertKey]))
}
