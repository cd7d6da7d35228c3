package create

import (
	"fmt"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// publishingFlags say how services are published on platforms that leave the choice.
var publishingFlags = []string{"external-api-server-address", "expose-through-load-balancer", "api-server-address", "service-publishing-strategy", "external-dns-domain"}

// keepsServices says that a cluster that exists stays published as it is, which can't change: nobody said how it should be, or only that it should be by
// node ports, as it is, at whatever address. Which node is the first may be another one each time.
func (o Options) keepsServices() bool {
	if o.existing == nil {
		return false
	}
	if o.needsAddress() && publishesAPIBy(o.existing) == hyperv1.NodePort {
		return true
	}
	switch o.Platform {
	case hyperv1.NonePlatform, hyperv1.LocalPlatform, hyperv1.AgentPlatform, hyperv1.KubevirtPlatform:
		return !o.chose(publishingFlags...) && o.APIServerAddress == "" && o.ExternalDNSDomain == "" && o.LoadBalancer == NewOptions(o.Platform).LoadBalancer
	}
	return false // there it depends on other things that may change, such as the access to the API
}

// publishesAPIBy is how the API server of a cluster is published.
func publishesAPIBy(hc *hyperv1.HostedCluster) hyperv1.PublishingStrategyType {
	for _, s := range hc.Spec.Services {
		if s.Service == hyperv1.APIServer {
			return s.ServicePublishingStrategy.Type
		}
	}
	return ""
}

// validatePublishing refuses names where services are published by node ports: external-dns makes no records for those, and a cluster that was made
// without the names never gets them.
func (o Options) validatePublishing() error {
	if o.ExternalDNSDomain == "" || o.APIServerAddress == "" && !o.needsAddress() {
		return nil
	}
	instead := "give --expose-through-load-balancer without --external-api-server-address, or"
	switch o.Platform {
	case hyperv1.AgentPlatform:
		instead = "name the API server by --api-server-address, and"
	case hyperv1.KubevirtPlatform:
		instead = "give --service-publishing-strategy " + publishIngress + ", or"
	}
	return fmt.Errorf("--external-dns-domain %s: services that are published by node port get no names below it: %s leave out --external-dns-domain", o.ExternalDNSDomain, instead)
}

// keepsPullSecret says that nobody named a pull secret on the platform that needs none, and that the cluster has one already: it may be another one by now.
func (o Options) keepsPullSecret() bool {
	return o.existing != nil && o.Platform == hyperv1.LocalPlatform && !o.chose("pull-secret") && string(o.PullSecret) == emptyPullSecret
}
