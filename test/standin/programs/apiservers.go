package programs

import "hcp.internal/platform/test/standin/checks"

// Flags that many programs share.
const (
	tlsFlags      = " tls-min-version=tlsversion tls-cipher-suites=suites"
	auditFlags    = " audit-log-format=text audit-log-maxbackup=number audit-log-maxsize=number audit-log-path=output! audit-policy-file=file! audit-webhook-config-file=file audit-webhook-mode=text audit-webhook-initial-backoff=duration"
	requestHeader = " requestheader-client-ca-file=ca! requestheader-allowed-names=text! requestheader-username-headers=text! requestheader-group-headers=text! requestheader-extra-headers-prefix=text! client-ca-file=ca!"
	authFlags     = " authorization-kubeconfig=kubeconfig! authentication-kubeconfig=kubeconfig!"
)

// APIGroups of the aggregated API servers, all of version v1.
var (
	openShiftGroups = []string{
		"apps.openshift.io", "authorization.openshift.io", "build.openshift.io", "image.openshift.io", "project.openshift.io",
		"quota.openshift.io", "route.openshift.io", "security.openshift.io", "template.openshift.io",
	}
	oauthGroups = []string{"oauth.openshift.io", "user.openshift.io"}
)

var apiServers = []Program{
	{
		Name: "openshift-apiserver", Image: "openshift-apiserver", Entry: true, Words: "start",
		Flags:  "config=file! internal-oauth-disabled=bool" + authFlags + requestHeader,
		Env:    "HTTP_PROXY HTTPS_PROXY NO_PROXY",
		Files:  []string{"/var/lib/kubelet/config.json", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"},
		Config: "config", Read: checks.OpenShiftAPIServer, Groups: openShiftGroups,
		Listen: []Listener{{Address: ":8443", Config: true, Host: "openshift-apiserver.NAMESPACE.svc"}},
	},
	{
		Name: "oauth-apiserver", Image: "oauth-apiserver", Words: "start",
		Flags: `kubeconfig=kubeconfig! secure-port=number! etcd-cafile=ca! etcd-keyfile=key! etcd-certfile=cert! etcd-servers=text! shutdown-delay-duration=duration
			tls-private-key-file=key! tls-cert-file=cert! cors-allowed-origins=text* v=number api-audiences=text! accesstoken-inactivity-timeout=duration` +
			authFlags + requestHeader + auditFlags + tlsFlags,
		Env:    "HTTP_PROXY HTTPS_PROXY NO_PROXY",
		Groups: oauthGroups,
		Listen: []Listener{{From: "secure-port", Cert: "-tls-cert-file", Key: "-tls-private-key-file", Host: "openshift-oauth-apiserver.NAMESPACE.svc"}},
	},
	{
		Name: "oauth-server", Image: "oauth-server", Entry: true, Words: "osinserver",
		Flags: "config=file!" + auditFlags, Env: "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY",
		Config: "config", Read: checks.Osin,
		Listen: []Listener{{Address: ":6443", Config: true, Host: "oauth-openshift.NAMESPACE.svc.cluster.local"}},
	},
	{
		Name: "package-server", Image: "operator-lifecycle-manager",
		Flags: "v=number secure-port=number! global-namespace=text! kubeconfig=kubeconfig!" + authFlags + tlsFlags,
		Env:   "OPERATOR_CONDITION_NAME GRPC_PROXY NO_PROXY", Groups: []string{"packages.operators.coreos.com"},
		Files: []string{"/tmp/k8s-webhook-server/serving-certs/tls.crt", "/tmp/k8s-webhook-server/serving-certs/tls.key"},
		Listen: []Listener{{
			From: "secure-port", Cert: "/apiserver.local.config/certificates/apiserver.crt", Key: "/apiserver.local.config/certificates/apiserver.key",
			Host: "packageserver.NAMESPACE.svc",
		}},
	},
}

var controllers = []Program{
	{
		Name: "openshift-controller-manager", Image: "openshift-controller-manager", Words: "start", Flags: "config=file! kubeconfig=kubeconfig! namespace=text!",
		Env: "POD_NAME POD_NAMESPACE", Config: "config", Read: checks.OpenShiftControllerManager,
		Listen: []Listener{{Address: ":8443", Config: true, Host: "openshift-controller-manager"}},
	},
	{
		Name: "route-controller-manager", Image: "route-controller-manager", Words: "start", Flags: "config=file! kubeconfig=kubeconfig! namespace=text!",
		Env: "POD_NAME POD_NAMESPACE", Config: "config", Read: checks.OpenShiftControllerManager,
		Listen: []Listener{{Address: ":8443", Config: true, Host: "openshift-controller-manager"}},
	},
	{
		Name: "cluster-policy-controller", Image: "cluster-policy-controller", Words: "start", Flags: "config=file! kubeconfig=kubeconfig! namespace=text!",
		Env: "POD_NAMESPACE", Config: "config", Read: checks.OpenShiftControllerManager,
		Listen: []Listener{{Address: ":10357", Config: true}},
	},
}
