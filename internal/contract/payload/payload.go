// Package payload is what the control plane and the hosted side of an OpenShift payload agree on: which parts the hosted cluster has, under which names it is
// published, and how settings and credentials are handed over. All of it follows from the HostedControlPlane.
package payload

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// ARO is the managed service Azure Red Hat OpenShift, in environment variable MANAGED_SERVICE.
const ARO = "ARO-HCP"

// ConfigMaps of the control plane namespace that hold an object of the hosted cluster under ObservedKey: the Build and the Project "cluster".
const (
	ObservedBuild   = "observed-config-build"
	ObservedProject = "observed-config-project"
	ObservedKey     = "config"
)

// standardCapabilities are what a hosted cluster has when spec.capabilities says nothing: those of a current payload without what hosted clusters
// have no use for (baremetal, ClusterAPI, CompatibilityRequirements).
var standardCapabilities = []string{
	"Build", "CSISnapshot", "CloudControllerManager", "CloudCredential", "Console", "DeploymentConfig", "ImageRegistry", "Ingress", "Insights", "MachineAPI",
	"NodeTuning", "OperatorLifecycleManager", "OperatorLifecycleManagerV1", "Storage", "marketplace", "openshift-samples",
}

// Capabilities are those that the hosted cluster has, sorted.
func Capabilities(hcp *hyperv1.HostedControlPlane) []string {
	set := slices.Clone(standardCapabilities)
	if c := hcp.Spec.Capabilities; c != nil {
		set = slices.DeleteFunc(set, func(name string) bool { return slices.Contains(c.Disabled, hyperv1.OptionalCapability(name)) })
		for _, name := range c.Enabled {
			set = append(set, string(name))
		}
	}
	slices.Sort(set)
	return slices.Compact(set)
}

// HasCapability says whether the hosted cluster has one.
func HasCapability(hcp *hyperv1.HostedControlPlane, name hyperv1.OptionalCapability) bool {
	return slices.Contains(Capabilities(hcp), string(name))
}

// OAuthEnabled says whether the hosted cluster has OpenShift's own OAuth server, that is, unless users come from an OIDC provider.
func OAuthEnabled(hcp *hyperv1.HostedControlPlane) bool {
	c := hcp.Spec.Configuration
	return c == nil || c.Authentication == nil || c.Authentication.Type != configv1.AuthenticationTypeOIDC
}

// BaseDomain is the DNS domain of the hosted cluster.
func BaseDomain(hcp *hyperv1.HostedControlPlane) string {
	dns, prefix := hcp.Spec.DNS, hcp.Name
	if dns.BaseDomainPrefix != nil {
		prefix = string(*dns.BaseDomainPrefix)
	}
	if prefix == "" || hcp.Spec.Platform.Type == hyperv1.IBMCloudPlatform {
		return string(dns.BaseDomain)
	}
	return prefix + "." + string(dns.BaseDomain)
}

// IngressDomain is the DNS domain of Routes in the hosted cluster.
func IngressDomain(hcp *hyperv1.HostedControlPlane) string {
	if c := hcp.Spec.Configuration; c != nil && c.Ingress != nil {
		switch {
		case c.Ingress.AppsDomain != "":
			return c.Ingress.AppsDomain
		case c.Ingress.Domain != "":
			return c.Ingress.Domain
		}
	}
	return "apps." + BaseDomain(hcp)
}

// Public says whether the API of the hosted cluster is reached from the internet.
func Public(hcp *hyperv1.HostedControlPlane) bool {
	switch p := hcp.Spec.Platform; {
	case p.AWS != nil && p.Type == hyperv1.AWSPlatform:
		return p.AWS.EndpointAccess != hyperv1.Private
	case p.GCP != nil && p.Type == hyperv1.GCPPlatform:
		return p.GCP.EndpointAccess != hyperv1.GCPEndpointAccessPrivate
	case p.Azure != nil && p.Type == hyperv1.AzurePlatform:
		return p.Azure.Topology != hyperv1.AzureTopologyPrivate
	}
	return true
}

// Private says whether nodes reach the control plane by a way that isn't the internet.
func Private(hcp *hyperv1.HostedControlPlane) bool {
	switch p := hcp.Spec.Platform; {
	case p.AWS != nil && p.Type == hyperv1.AWSPlatform:
		return p.AWS.EndpointAccess == hyperv1.Private || p.AWS.EndpointAccess == hyperv1.PublicAndPrivate
	case p.GCP != nil && p.Type == hyperv1.GCPPlatform:
		return p.GCP.EndpointAccess == hyperv1.GCPEndpointAccessPrivate || p.GCP.EndpointAccess == hyperv1.GCPEndpointAccessPublicAndPrivate
	case p.Azure != nil && p.Type == hyperv1.AzurePlatform:
		return p.Azure.Topology == hyperv1.AzureTopologyPrivate || p.Azure.Topology == hyperv1.AzureTopologyPublicAndPrivate || Swift(hcp)
	}
	return false
}

// Swift says whether router pods have a network interface in the virtual network of the hosted cluster, on Azure.
func Swift(hcp *hyperv1.HostedControlPlane) bool {
	azure := hcp.Spec.Platform.Azure
	if azure == nil || azure.Private == nil {
		return hcp.Annotations[hyperv1.SwiftPodNetworkInstanceAnnotation] != ""
	}
	return azure.Private.Type == hyperv1.AzurePrivateTypeSwift
}

// LocalAPIHost is the name of the API server in the private zone of the hosted cluster's network.
func LocalAPIHost(hcp *hyperv1.HostedControlPlane) string {
	return "api." + hcp.Name + ".hypershift.local"
}

// APIServerURLs are those in the hosted cluster's Infrastructure: external for users, and internal for its nodes. It is an error when the API server isn't
// published yet.
func APIServerURLs(hcp *hyperv1.HostedControlPlane) (external, internal string, err error) {
	endpoint := hcp.Status.ControlPlaneEndpoint
	if endpoint.Host == "" {
		return "", "", errors.New("status.controlPlaneEndpoint of the HostedControlPlane isn't known yet")
	}
	url := func(host string) string {
		return "https://" + net.JoinHostPort(host, strconv.Itoa(int(endpoint.Port)))
	}
	external, internal = url(endpoint.Host), url(endpoint.Host)
	if hcp.Spec.KubeAPIServerDNSName != "" {
		external = url(hcp.Spec.KubeAPIServerDNSName)
	}
	if Private(hcp) {
		internal = url(LocalAPIHost(hcp))
	}
	return external, internal, nil
}

// ForwardsMetrics says whether the metrics of the control plane are offered to the hosted cluster.
func ForwardsMetrics(hcp *hyperv1.HostedControlPlane) bool {
	_, disabled := hcp.Annotations[hyperv1.DisableMonitoringServices]
	return !disabled && hcp.Spec.Monitoring.MetricsForwarding.Mode == hyperv1.MetricsForwardingForward
}

// webIdentity is a file of AWS credentials by which a program assumes a role with a token that is kept fresh beside it.
const webIdentity = `[default]
role_arn = %s
web_identity_token_file = /var/run/secrets/openshift/serviceaccount/token
sts_regional_endpoints = regional
`

// AWSCredentials are the content of a credentials file for a role.
func AWSCredentials(roleARN string) string { return fmt.Sprintf(webIdentity, roleARN) }
