package clusternetworkoperator

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/releaseimage"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/settings"
	"hcp.internal/platform/internal/endpoints"
)

// Images that the operator is told of, by variable and tag: of what runs beside the control plane, and of what runs on nodes.
var (
	controlPlaneImages = [][2]string{
		{"MULTUS_ADMISSION_CONTROLLER_IMAGE", "multus-admission-controller"},
		{"OVN_CONTROL_PLANE_IMAGE", "ovn-kubernetes"},
		{"CLOUD_NETWORK_CONFIG_CONTROLLER_IMAGE", "cloud-network-config-controller"},
		{"TOKEN_MINTER_IMAGE", "token-minter"},
		{"CLI_CONTROL_PLANE_IMAGE", "cli"},
		{"SOCKS5_PROXY_IMAGE", "socks5-proxy"},
	}
	nodeImages = [][2]string{
		{"KUBE_PROXY_IMAGE", "kube-proxy"},
		{"KUBE_RBAC_PROXY_IMAGE", "kube-rbac-proxy"},
		{"MULTUS_IMAGE", "multus-cni"},
		{"CNI_PLUGINS_IMAGE", "container-networking-plugins"},
		{"BOND_CNI_PLUGIN_IMAGE", "network-interface-bond-cni"},
		{"WHEREABOUTS_CNI_IMAGE", "multus-whereabouts-ipam-cni"},
		{"ROUTE_OVERRRIDE_CNI_IMAGE", "multus-route-override-cni"}, // the operator spells it so
		{"MULTUS_NETWORKPOLICY_IMAGE", "multus-networkpolicy"},
		{"OVN_IMAGE", "ovn-kubernetes"},
		{"EGRESS_ROUTER_CNI_IMAGE", "egress-router-cni"},
		{"NETWORK_METRICS_DAEMON_IMAGE", "network-metrics-daemon"},
		{"NETWORK_CHECK_SOURCE_IMAGE", "cluster-network-operator"},
		{"NETWORK_CHECK_TARGET_IMAGE", "cluster-network-operator"},
		{"NETWORKING_CONSOLE_PLUGIN_IMAGE", "networking-console-plugin"},
		{"CLI_IMAGE", "cli"},
		{"FRR_K8S_IMAGE", "metallb-frr"},
	}
)

// environment is what the operator is told of the hosted cluster, on every cloud.
func environment(ctx component.WorkloadContext) []corev1.EnvVar {
	var env []corev1.EnvVar
	add := func(name, value string) { env = append(env, corev1.EnvVar{Name: name, Value: value}) }
	host, port := override(ctx)
	add("HOSTED_CLUSTER_NAME", ctx.HCP.Name)
	add("TOKEN_AUDIENCE", settings.Issuer(ctx.HCP))
	add("RELEASE_VERSION", ctx.UserRelease.Version)
	add("OPENSHIFT_RELEASE_IMAGE", releaseimage.ControlPlane(&ctx.HCP.Spec))
	add("APISERVER_OVERRIDE_HOST", host)
	add("APISERVER_OVERRIDE_PORT", strconv.Itoa(int(port)))
	for _, image := range controlPlaneImages {
		add(image[0], kit.Image(ctx, image[1]))
	}
	for _, image := range nodeImages {
		add(image[0], kit.UserImage(ctx, image[1]))
	}
	if !kit.Private(ctx.HCP) {
		add("PROXY_INTERNAL_APISERVER_ADDRESS", "true")
	}
	if ctx.Environment.RHOBSMonitoring {
		add("RHOBS_MONITORING", "1")
	}
	proxy := ctx.Environment.Proxy
	for _, v := range [][2]string{{"MGMT_HTTP_PROXY", proxy.HTTP}, {"MGMT_HTTPS_PROXY", proxy.HTTPS}, {"MGMT_NO_PROXY", proxy.No}} {
		if v[1] != "" {
			add(v[0], v[1])
		}
	}
	return env
}

// clouds is what it is told on some clouds only.
func clouds(ctx component.WorkloadContext) []corev1.EnvVar {
	var env []corev1.EnvVar
	if kit.ARO(ctx) {
		env = append(env, corev1.EnvVar{Name: "ARO_HCP_SECRET_PROVIDER_CLASS", Value: identityClass})
		if id := identity(ctx.HCP); id != nil { // the name alone: the operator mounts it into what it makes
			env = append(env, corev1.EnvVar{Name: "MANAGED_AZURE_HCP_CREDENTIALS_FILE_PATH", Value: id.CredentialsSecretName})
		}
	}
	if ctx.HCP.Spec.Platform.Type == hyperv1.GCPPlatform {
		env = append(env, corev1.EnvVar{Name: "GCP_CNCC_CREDENTIALS_FILE", Value: "application_default_credentials.json"})
	}
	return env
}

// override is where nodes reach the API server.
func override(ctx component.WorkloadContext) (host string, port int32) {
	hcp := ctx.HCP
	if kit.Private(hcp) {
		port = endpoints.BalancedAPIPort(hcp)
		if s := endpoints.StrategyFor(hcp, hyperv1.APIServer); s != nil && s.Type == hyperv1.Route {
			port = endpoints.RoutePort
		}
		return kit.LocalAPIHost(hcp), port
	}
	host, port = kit.Published(ctx)
	if api := hcp.Spec.Networking.APIServer; api != nil && hcp.Spec.Platform.Type == hyperv1.IBMCloudPlatform {
		if api.AdvertiseAddress != nil {
			host = *api.AdvertiseAddress
		}
		if api.Port != nil {
			port = *api.Port
		}
	}
	return host, port
}
