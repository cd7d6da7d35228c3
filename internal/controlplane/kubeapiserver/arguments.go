package kubeapiserver

import (
	"errors"
	"fmt"
	"strings"
	"time"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/controlplane/settings"
	"hcp.internal/platform/internal/encryption"
)

const (
	auditWebhookDir   = "/etc/kubernetes/auditwebhook"
	encryptionDir     = "/etc/kubernetes/secret-encryption"
	authenticationDir = "/etc/kubernetes/auth"
	tokenWebhookDir   = "/etc/kubernetes/token-webhook"

	// minTokenExpiration is the least that kube-apiserver takes for --service-account-max-token-expiration, besides an hour
	// as its own rule; the annotation promises 600 s.
	minTokenExpiration = 600 * time.Second
)

// shutdown is how long a server that is told to stop goes on. Then it closes connections in the way of HTTP/2, and clients go on by others without having noticed.
// With --shutdown-send-retry-after they were told, on connections that had lasted so long, to come back in five seconds: requests with less patience failed at the end
// of every server.
type shutdown struct{ delay, watches string }

var (
	// With several replicas, load balancers and long watches have time to notice.
	gracefulShutdown = shutdown{delay: "70s", watches: "25s"}
	// A single replica is replaced by one that serves already, so only kube-proxy has to notice; and when it is deleted,
	// nobody is left to be graceful to.
	quickShutdown = shutdown{delay: "5s", watches: "5s"}
)

// arguments are the flags that depend on the control plane.
func arguments(ctx component.WorkloadContext) ([]string, error) {
	hcp, stop, goaway := ctx.HCP, quickShutdown, "0"
	if ctx.HighlyAvailable() {
		stop, goaway = gracefulShutdown, "0.001"
	}
	bind := "0.0.0.0"
	if settings.IPv6(hcp) {
		bind = "::"
	}
	if ctx.Infra.AdvertiseAddress == "" {
		return nil, errors.New("the address that kube-apiserver advertises is not known yet: it waits for the Service kube-apiserver")
	}
	etcd, err := etcdServers(hcp)
	if err != nil {
		return nil, err
	}
	issuer := settings.Issuer(hcp)
	args := []string{
		"--advertise-address=" + ctx.Infra.AdvertiseAddress,
		"--bind-address=" + bind,
		"--secure-port=" + fmt.Sprint(settings.APIPodPort(hcp)),
		"--etcd-servers=" + etcd,
		"--service-cluster-ip-range=" + strings.Join(settings.ServiceCIDRs(hcp), ","),
		"--service-account-issuer=" + issuer,
		"--api-audiences=" + issuer,
		"--service-account-jwks-uri=" + issuer + "/openid/v1/jwks",
		"--goaway-chance=" + annotated(hcp, hyperv1.KubeAPIServerGoAwayChance, goaway),
		"--max-requests-inflight=" + annotated(hcp, hyperv1.KubeAPIServerMaximumRequestsInFlight, "3000"),
		"--max-mutating-requests-inflight=" + annotated(hcp, hyperv1.KubeAPIServerMaximumMutatingRequestsInFlight, "1000"),
		"--shutdown-delay-duration=" + stop.delay,
		"--shutdown-watch-termination-grace-period=" + stop.watches,
		"--profiling=false",
		"--cors-allowed-origins=" + strings.Join(corsOrigins(hcp), ","),
		"--v=" + annotated(hcp, hyperv1.KubeAPIServerVerbosityLevelAnnotation, "2"),
	}
	if overrides := shards.Overrides(hcp.Namespace, hcp.Spec.Etcd); len(overrides) > 0 {
		args = append(args, "--etcd-servers-overrides="+strings.Join(overrides, ","))
	}
	args = append(args, settings.TLSOf(hcp).Flags()...)
	args = append(args, settings.FeatureGates(hcp)...)
	for i := range settings.APIServer(hcp).ServingCerts.NamedCertificates {
		args = append(args, namedCertificate(hcp, i))
	}
	if ok, _ := encrypted(ctx); ok {
		args = append(args, "--encryption-provider-config="+encryptionDir+"/"+encryption.ConfigKey, "--encryption-provider-config-automatic-reload=false")
	}
	if ok, _ := externalOIDC(ctx); ok {
		args = append(args, "--authentication-config="+authenticationDir+"/"+authenticationKey)
	}
	if tokenWebhook(hcp) != "" {
		args = append(args, "--authentication-token-webhook-config-file="+tokenWebhookDir+"/"+tokenWebhookKey, "--authentication-token-webhook-version=v1")
	}
	if hcp.Spec.AuditWebhook != nil && hcp.Spec.AuditWebhook.Name != "" {
		args = append(args,
			"--audit-webhook-config-file="+auditWebhookDir+"/webhook-kubeconfig",
			"--audit-webhook-mode=batch", "--audit-webhook-initial-backoff=5s")
	}
	expiration, err := tokenExpiration(hcp)
	return append(args, expiration...), err
}

// annotated is the value of an annotation, else the default.
func annotated(hcp *hyperv1.HostedControlPlane, annotation, otherwise string) string {
	if value := strings.TrimSpace(hcp.Annotations[annotation]); value != "" {
		return value
	}
	return otherwise
}

func etcdServers(hcp *hyperv1.HostedControlPlane) (string, error) {
	if hcp.Spec.Etcd.ManagementType == hyperv1.Managed {
		return "https://etcd-client." + hcp.Namespace + ".svc:2379", nil
	}
	if hcp.Spec.Etcd.Unmanaged == nil {
		return "", errors.New("spec.etcd.unmanaged is missing")
	}
	return hcp.Spec.Etcd.Unmanaged.Endpoint, nil
}

// corsOrigins are the origins, as regular expressions, of web pages that may call the API.
func corsOrigins(hcp *hyperv1.HostedControlPlane) []string {
	return append([]string{`//127\.0\.0\.1(:|$)`, `//localhost(:|$)`}, settings.APIServer(hcp).AdditionalCORSAllowedOrigins...)
}

// namedCertificate presents a certificate of the user to clients that ask for one of its names; without names, those in the
// certificate.
func namedCertificate(hcp *hyperv1.HostedControlPlane, i int) string {
	arg := "--tls-sni-cert-key=" + namedDir(i) + "/tls.crt," + namedDir(i) + "/tls.key"
	if names := settings.APIServer(hcp).ServingCerts.NamedCertificates[i].Names; len(names) > 0 {
		arg += ":" + strings.Join(names, ",")
	}
	return arg
}

// tokenExpiration limits how long a ServiceAccount token may be good for. The annotation is in seconds, or a duration.
func tokenExpiration(hcp *hyperv1.HostedControlPlane) ([]string, error) {
	value := annotated(hcp, hyperv1.KubeAPIServerServiceAccountTokenMaxExpiration, "")
	if value == "" {
		return nil, nil
	}
	limit, err := time.ParseDuration(value)
	if err != nil {
		limit, err = time.ParseDuration(value + "s")
	}
	if err != nil || limit < minTokenExpiration {
		return nil, fmt.Errorf("annotation %s is %q: it must be a duration of at least %s",
			hyperv1.KubeAPIServerServiceAccountTokenMaxExpiration, value, minTokenExpiration)
	}
	return []string{"--service-account-max-token-expiration=" + limit.String()}, nil
}
