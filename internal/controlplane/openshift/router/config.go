package router

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// head is the part of the configuration that is the same for all.
const head = `global
  log stdout local0
  maxconn 20000

defaults
  mode tcp
  log global
  log-format "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq"
  option dontlognull
  retries 3
  timeout http-request 30s
  timeout queue 1m
  timeout connect 10s
  timeout client 86400s
  timeout server 86400s
  timeout tunnel 86400s
`

const frontend = `
frontend main
  bind :::8443 v4v6
  tcp-request inspect-delay 5s
  tcp-request content accept if { req_ssl_hello_type 1 }
`

const health = `
listen health_check_http_url
  bind :::9444 v4v6
  mode http
  monitor-uri /haproxy_ready
  option dontlognull
`

// api is the backend of kube-apiserver, and apiService its Service whatever a Route says.
const api, apiService = "kube_api", "kube-apiserver"

// azureDNS resolves private names in a virtual network.
const azureDNS = "168.63.129.16:53"

// backend is where connections of a Route go.
type backend struct {
	name string
	port int // 0: that of the Route
}

var backends = map[string]backend{
	"kube-apiserver": {api, 6443}, "kube-apiserver-private": {api, 6443}, "kube-apiserver-internal": {api, 6443},
	"ignition-server": {"ignition", 443}, "konnectivity-server": {"konnectivity", 8091},
	"oauth": {"oauth", 6443}, "oauth-private": {"oauth_private", 6443}, "oauth-internal": {"oauth_internal", 6443},
	"metrics-forwarder": {"metrics_forwarder", 0}, "metrics-proxy": {"metrics_proxy", 443},
}

// config is haproxy.cfg for the Routes that are the router's, in the order of their names.
func config(ctx component.WorkloadContext, routes map[string]route) (string, error) {
	var rules, servers strings.Builder
	made, labelled := map[string]bool{}, false
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		r, to := routes[name], backends[name]
		if !r.ours || to.name == "" {
			continue
		}
		labelled = true
		if errs := validation.IsDNS1123Subdomain(r.host); len(errs) > 0 { // it goes into a file of configuration
			if r.host == "" {
				continue // the Route has none yet
			}
			return "", fmt.Errorf("the host %q of Route %s is no DNS name: %s", r.host, name, strings.Join(errs, ", "))
		}
		acl := "is_" + strings.ReplaceAll(name, "-", "_")
		fmt.Fprintf(&rules, "\n  acl %s req_ssl_sni -i %s\n  use_backend %s if %s\n", acl, r.host, to.name, acl)
		if made[to.name] {
			continue
		}
		made[to.name] = true
		service := r.service
		if to.name == api {
			service = apiService
		}
		address, err := clusterIP(ctx, service)
		if err != nil {
			return "", fmt.Errorf("route %s: %w", name, err)
		}
		port := to.port
		if port == 0 {
			port = r.port
		}
		fmt.Fprintf(&servers, "\nbackend %s\n  server %s %s:%d\n", to.name, to.name, address, port)
	}
	if _, ok := routes["metrics-proxy"]; !ok && kit.ForwardsMetrics(ctx.HCP) && (labelled || kit.Private(ctx.HCP)) && !ctx.Unconditional {
		return "", fmt.Errorf("waiting for Route metrics-proxy")
	}
	if vault := kit.PrivateKeyVault(ctx); vault != "" {
		if errs := validation.IsDNS1123Subdomain(strings.ToLower(vault)); len(errs) > 0 {
			return "", fmt.Errorf("spec.secretEncryption.kms.azure.activeKey.keyVaultName: %q is no DNS name: %s", vault, strings.Join(errs, ", "))
		}
		fmt.Fprintf(&rules, "\n  acl is_keyvault req_ssl_sni -i %s\n  use_backend keyvault if is_keyvault\n", vault)
		fmt.Fprintf(&servers, "\nresolvers azure_dns\n  nameserver azure %s\n\nbackend keyvault\n  server keyvault %s:443 resolvers azure_dns\n", azureDNS, vault)
	}
	text := head + frontend + rules.String()
	if made[api] {
		text += "\n  default_backend " + api + "\n"
	}
	return text + health + servers.String(), nil
}

// clusterIP is the address of a Service.
func clusterIP(ctx component.WorkloadContext, name string) (string, error) {
	svc := &corev1.Service{}
	key := client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: name}
	if err := ctx.Reader.Get(ctx.Context, key, svc); err != nil {
		return "", fmt.Errorf("reading Service %s: %w", key, err)
	}
	if strings.Contains(svc.Spec.ClusterIP, ":") {
		return "[" + svc.Spec.ClusterIP + "]", nil
	}
	return svc.Spec.ClusterIP, nil
}
