package kubeapiserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/settings"
)

// Folders of the main container.
const (
	certsDir      = "/etc/kubernetes/certs"
	encryptionDir = "/etc/kubernetes/secret-encryption"
)

// adaptConfig writes the server's configuration.
func adaptConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	gates, err := featureGates(ctx)
	if err != nil {
		return err
	}
	args, err := arguments(ctx, gates)
	if err != nil {
		return err
	}
	hcp := ctx.HCP
	config := map[string]any{
		"apiVersion": "kubecontrolplane.config.openshift.io/v1", "kind": "KubeAPIServerConfig",
		"admission":                    map[string]any{"pluginConfig": pluginConfig(hcp, gates)},
		"apiServerArguments":           args,
		"consolePublicURL":             "https://console-openshift-console." + kit.BaseDomain(hcp),
		"corsAllowedOrigins":           append([]string{`//127\.0\.0\.1(:|$)`, `//localhost(:|$)`}, settings.APIServer(hcp).AdditionalCORSAllowedOrigins...),
		"imagePolicyConfig":            imagePolicy(hcp),
		"serviceAccountPublicKeyFiles": []string{"/etc/kubernetes/secrets/svcacct-key/service-account.pub"},
		"servicesSubnet":               strings.Join(settings.ServiceCIDRs(hcp), ","),
		"servingInfo":                  servingInfo(hcp),
	}
	if kit.OAuthEnabled(hcp) {
		config["authConfig"] = map[string]any{"oauthMetadataFile": "/etc/kubernetes/oauth/" + oauthMetadataKey}
	}
	if c := hcp.Spec.Configuration; c != nil && c.Scheduler != nil && c.Scheduler.DefaultNodeSelector != "" {
		config["projectConfig"] = map[string]any{"defaultNodeSelector": c.Scheduler.DefaultNodeSelector}
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("writing the server's configuration: %w", err)
	}
	cm.Data = map[string]string{"config.json": string(raw)}
	return nil
}

// featureGates are those of the payload, sorted, and two that hosted clusters rely on.
func featureGates(ctx component.WorkloadContext) ([]string, error) {
	gates, err := kit.FeatureGates(ctx)
	if err != nil {
		return nil, err
	}
	for _, forced := range []string{"ValidatingAdmissionPolicy", "StructuredAuthenticationConfiguration"} {
		gates = slices.DeleteFunc(gates, func(g string) bool { return strings.HasPrefix(g, forced+"=") })
		gates = append(gates, forced+"=true")
	}
	slices.Sort(gates)
	return slices.Compact(gates), nil
}

func imagePolicy(hcp *hyperv1.HostedControlPlane) map[string]any {
	policy := map[string]any{"internalRegistryHostname": "image-registry.openshift-image-registry.svc:5000"}
	if !kit.HasCapability(hcp, hyperv1.ImageRegistryCapability) {
		policy["internalRegistryHostname"] = ""
	}
	if c := hcp.Spec.Configuration; c != nil && c.Image != nil {
		kit.SetUnlessEmpty(policy, "externalRegistryHostnames", c.Image.ExternalRegistryHostnames)
	}
	return policy
}

func servingInfo(hcp *hyperv1.HostedControlPlane) map[string]any {
	var named []any
	for i, cert := range settings.APIServer(hcp).ServingCerts.NamedCertificates {
		entry := pair(namedDir(i))
		kit.SetUnlessEmpty(entry, "names", cert.Names)
		named = append(named, entry)
	}
	info := pair(certsDir + "/server")
	info["bindAddress"], info["bindNetwork"] = fmt.Sprintf("0.0.0.0:%d", settings.APIPodPort(hcp)), "tcp4"
	info["namedCertificates"] = append(named, pair(certsDir+"/server-private"))
	kit.TLSOf(hcp).ServingInfo(info)
	return info
}

func pair(dir string) map[string]any {
	return map[string]any{"certFile": dir + "/tls.crt", "keyFile": dir + "/tls.key"}
}

// arguments are the flags, by name.
func arguments(ctx component.WorkloadContext, gates []string) (map[string][]string, error) {
	hcp := ctx.HCP
	if ctx.Infra.AdvertiseAddress == "" {
		return nil, errors.New("the address that kube-apiserver advertises is not known yet: it waits for the Service kube-apiserver")
	}
	issuer := settings.Issuer(hcp)
	args := map[string][]string{}
	set := func(name string, values ...string) { args[name] = values }
	for name, value := range constantArguments {
		set(name, value)
	}
	goaway := "0.001"
	if hcp.Spec.ControllerAvailabilityPolicy == hyperv1.SingleReplica {
		goaway = "0"
	}
	hsts := "max-age=31536000,includeSubDomains,preload"
	if hcp.Spec.Platform.Type == hyperv1.IBMCloudPlatform {
		hsts = "max-age=31536000"
	}
	set("advertise-address", ctx.Infra.AdvertiseAddress)
	set("api-audiences", issuer)
	set("service-account-issuer", issuer)
	set("service-account-jwks-uri", issuer+"/openid/v1/jwks")
	set("authorization-mode", "Scope", "SystemMasters", "RBAC", "Node")
	set("etcd-servers", etcdServer(hcp))
	if overrides := shards.Overrides(hcp.Namespace, hcp.Spec.Etcd); len(overrides) > 0 {
		set("etcd-servers-overrides", overrides...)
	}
	set("feature-gates", gates...)
	set("goaway-chance", annotated(hcp, hyperv1.KubeAPIServerGoAwayChance, goaway))
	set("max-requests-inflight", annotated(hcp, hyperv1.KubeAPIServerMaximumRequestsInFlight, "3000"))
	set("max-mutating-requests-inflight", annotated(hcp, hyperv1.KubeAPIServerMaximumMutatingRequestsInFlight, "1000"))
	set("requestheader-allowed-names", "kube-apiserver-proxy", "system:kube-apiserver-proxy", "system:openshift-aggregator")
	set("runtime-config", runtimeConfig(gates)...)
	set("service-node-port-range", cmp.Or(settings.NodePortRange(hcp), "30000-32767"))
	set("strict-transport-security-directives", hsts)
	if value := annotated(hcp, hyperv1.KubeAPIServerServiceAccountTokenMaxExpiration, ""); value != "" {
		set("service-account-max-token-expiration", value)
	}
	if len(kit.ProfilingArgs(hcp, Name)) > 0 {
		set("profiling", "false")
	}
	for _, s := range kit.AuditWebhookSettings(ctx) {
		set(s[0], s[1])
	}
	logs, err := settings.PersistentAuditLogs(hcp)
	if err != nil {
		return nil, err
	}
	if logs != nil {
		set("audit-log-maxsize", fmt.Sprint(logs.MaxSize))
		set("audit-log-maxbackup", fmt.Sprint(logs.MaxBackup))
	}
	admissionPlugins(hcp, set)
	switch {
	case kit.OAuthEnabled(hcp):
		set("authentication-token-webhook-config-file", "/etc/kubernetes/auth-token-webhook/kubeconfig")
		set("authentication-token-webhook-version", "v1")
	case len(settings.Authentication(hcp).OIDCProviders) > 0:
		set("authentication-config", "/etc/kubernetes/auth/"+authenticationKey)
	}
	return args, nil
}

// annotated is the value of an annotation, else the default.
func annotated(hcp *hyperv1.HostedControlPlane, annotation, otherwise string) string {
	return cmp.Or(strings.TrimSpace(hcp.Annotations[annotation]), otherwise)
}

func etcdServer(hcp *hyperv1.HostedControlPlane) string {
	if kit.ManagedEtcd(hcp) {
		return "https://etcd-client." + hcp.Namespace + ".svc:2379"
	}
	return kit.EtcdURL(hcp)
}

// runtimeConfig are the versions of APIs that are served beyond the usual ones, as far as the features that they belong to are on.
func runtimeConfig(gates []string) []string {
	on := []string{"admissionregistration.k8s.io/v1beta1=true"}
	for _, api := range [][2]string{{"DynamicResourceAllocation", "resource.k8s.io/v1beta1=true"}, {"VolumeAttributesClass", "storage.k8s.io/v1beta1=true"}} {
		if slices.Contains(gates, api[0]+"=true") {
			on = append(on, api[1])
		}
	}
	return on
}

// constantArguments are the flags that are the same for every control plane.
var constantArguments = map[string]string{
	"allow-privileged":                        "true",
	"anonymous-auth":                          "true",
	"audit-log-format":                        "json",
	"audit-log-maxbackup":                     "1",
	"audit-log-maxsize":                       "10",
	"audit-log-path":                          "/var/log/kube-apiserver/audit.log",
	"audit-policy-file":                       "/etc/kubernetes/audit/policy.yaml",
	"client-ca-file":                          certsDir + "/client-ca/ca.crt",
	"egress-selector-config-file":             "/etc/kubernetes/egress-selector/config.yaml",
	"enable-aggregator-routing":               "true",
	"enable-logs-handler":                     "false",
	"endpoint-reconciler-type":                "none",
	"etcd-cafile":                             certsDir + "/etcd-ca/ca.crt",
	"etcd-certfile":                           certsDir + "/etcd/etcd-client.crt",
	"etcd-keyfile":                            certsDir + "/etcd/etcd-client.key",
	"etcd-prefix":                             "kubernetes.io",
	"event-ttl":                               "3h",
	"http2-max-streams-per-connection":        "2000",
	"kubelet-certificate-authority":           certsDir + "/kubelet-ca/ca.crt",
	"kubelet-client-certificate":              certsDir + "/kubelet/tls.crt",
	"kubelet-client-key":                      certsDir + "/kubelet/tls.key",
	"kubelet-preferred-address-types":         "InternalIP",
	"kubelet-read-only-port":                  "0",
	"kubernetes-service-node-port":            "0",
	"min-request-timeout":                     "3600",
	"proxy-client-cert-file":                  certsDir + "/aggregator/tls.crt",
	"proxy-client-key-file":                   certsDir + "/aggregator/tls.key",
	"requestheader-client-ca-file":            certsDir + "/aggregator-ca/ca.crt",
	"requestheader-extra-headers-prefix":      "X-Remote-Extra-",
	"requestheader-group-headers":             "X-Remote-Group",
	"requestheader-username-headers":          "X-Remote-User",
	"service-account-lookup":                  "true",
	"service-account-signing-key-file":        "/etc/kubernetes/secrets/svcacct-key/service-account.key",
	"shutdown-delay-duration":                 "70s",
	"shutdown-send-retry-after":               "true",
	"shutdown-watch-termination-grace-period": "25s",
	"storage-backend":                         "etcd3",
	"storage-media-type":                      "application/vnd.kubernetes.protobuf",
	"tls-cert-file":                           certsDir + "/server/tls.crt",
	"tls-private-key-file":                    certsDir + "/server/tls.key",
}
