package privatelink

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v6"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// maxPages bounds lists of Azure.
const maxPages = 50

// Provider calls Azure as the management cluster. Its clients are the SDK's own types and no interfaces: through an interface, programs would link every call
// that there is.
type Provider struct {
	Location
	balancers *armnetwork.LoadBalancersClient
	services  *armnetwork.PrivateLinkServicesClient
	networks  *armnetwork.VirtualNetworksClient
	subnets   *armnetwork.SubnetsClient
}

// NewProvider makes one. It makes no request.
func NewProvider(at Location) (*Provider, error) {
	f, err := armnetwork.NewClientFactory(at.Subscription, at.Token, at.Options)
	if err != nil {
		return nil, fmt.Errorf("making a client of Azure: %w", err)
	}
	return &Provider{at, f.NewLoadBalancersClient(), f.NewPrivateLinkServicesClient(), f.NewVirtualNetworksClient(), f.NewSubnetsClient()}, nil
}

// frontend is where a load balancer takes traffic.
type frontend struct{ balancer, id, subnet string }

// frontend finds the one of an address.
func (p *Provider) frontend(ctx context.Context, address string) (*frontend, error) {
	pager := p.balancers.NewListPager(p.Group, nil)
	for range maxPages {
		if !pager.More() {
			break
		}
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, told("failed to list the load balancers of resource group "+p.Group, err)
		}
		for _, b := range page.Value {
			if b.Properties == nil {
				continue
			}
			for _, f := range b.Properties.FrontendIPConfigurations {
				if f.Properties != nil && value(f.Properties.PrivateIPAddress) == address && f.Properties.Subnet != nil {
					return &frontend{idOf(p.Subscription, p.Group, "loadBalancers", value(b.Name)), value(f.ID), value(f.Properties.Subnet.ID)}, nil
				}
			}
		}
	}
	return nil, &waiting{fmt.Sprintf("No load balancer in resource group %s has address %s: the management cluster's cloud provider makes it there, or install the operator with another "+
		"--azure-pls-resource-group", p.Group, address), prerequisite}
}

// service is the Private Link service of a name, nil when there is none.
func (p *Provider) service(ctx context.Context, name string) (*armnetwork.PrivateLinkService, error) {
	out, err := p.services.Get(ctx, p.Group, name, nil)
	if gone(err) {
		return nil, nil
	} else if err != nil {
		return nil, told("failed to find Private Link service "+name, err)
	}
	if out.Properties == nil {
		out.Properties = &armnetwork.PrivateLinkServiceProperties{}
	}
	return &out.PrivateLinkService, nil
}

// foreign says whether a Private Link service is another hosted cluster's. It has its name by spec.clusterID, which any author of a HostedCluster chooses.
func foreign(s *armnetwork.PrivateLinkService, hc *hyperv1.HostedCluster) bool {
	if of := value(s.Tags[hostedClusterTag]); of != "" {
		return of != names.BackReference(hc)
	}
	return value(s.Tags[clusterTag+hc.Name]) != owned // of before that tag
}

// unnoted is the name that the Private Link service of a link has, if one may be there that nobody noted; empty: it is another hosted cluster's.
func (p *Provider) unnoted(ctx context.Context, link string, hc *hyperv1.HostedCluster) (string, error) {
	name := serviceName(link, hc.Spec.ClusterID)
	live, err := p.service(ctx, name)
	if err != nil || live != nil && foreign(live, hc) {
		return "", err
	}
	return name, nil
}

// put makes or changes a Private Link service.
func (p *Provider) put(ctx context.Context, name string, service armnetwork.PrivateLinkService) (*armnetwork.PrivateLinkService, error) {
	poller, err := p.services.BeginCreateOrUpdate(ctx, p.Group, name, service, nil)
	out, err := settle(ctx, "Private Link service "+name, poller, err)
	if err != nil {
		return nil, told("failed to write Private Link service "+name, err)
	}
	if out.Properties == nil {
		out.Properties = &armnetwork.PrivateLinkServiceProperties{}
	}
	return &out.PrivateLinkService, nil
}

// wish is what a Private Link service is to be.
type wish struct {
	location, frontend, subnet string
	subscriptions              []string
	tags                       map[string]*string
}

// made is a Private Link service as it is to be.
func (w wish) made() armnetwork.PrivateLinkService {
	return armnetwork.PrivateLinkService{
		Location: &w.location, Tags: w.tags,
		Properties: &armnetwork.PrivateLinkServiceProperties{
			EnableProxyProtocol:                  to.Ptr(false),
			LoadBalancerFrontendIPConfigurations: []*armnetwork.FrontendIPConfiguration{{ID: &w.frontend}},
			IPConfigurations: []*armnetwork.PrivateLinkServiceIPConfiguration{{Name: to.Ptr("nat"), Properties: &armnetwork.PrivateLinkServiceIPConfigurationProperties{
				Primary: to.Ptr(true), PrivateIPAllocationMethod: to.Ptr(armnetwork.IPAllocationMethodDynamic), PrivateIPAddressVersion: to.Ptr(armnetwork.IPVersionIPv4), Subnet: &armnetwork.Subnet{ID: &w.subnet},
			}}},
			Visibility:   &armnetwork.PrivateLinkServicePropertiesVisibility{Subscriptions: to.SliceOfPtrs(w.subscriptions...)},
			AutoApproval: &armnetwork.PrivateLinkServicePropertiesAutoApproval{Subscriptions: to.SliceOfPtrs(w.subscriptions...)},
		},
	}
}

// leadsTo tells whether a Private Link service has a frontend.
func leadsTo(s *armnetwork.PrivateLinkService, id string) bool {
	for _, f := range s.Properties.LoadBalancerFrontendIPConfigurations {
		if strings.EqualFold(value(f.ID), id) {
			return true
		}
	}
	return false
}

// open tells whether those may connect who are to, and nobody else.
func open(s *armnetwork.PrivateLinkService, want []string) bool {
	return s.Properties.Visibility != nil && same(s.Properties.Visibility.Subscriptions, want) &&
		s.Properties.AutoApproval != nil && same(s.Properties.AutoApproval.Subscriptions, want)
}

// comesOrGoes tells that Azure is at work on something, so that it would refuse to be asked for more.
func comesOrGoes(s *armnetwork.ProvisioningState) bool {
	switch value(s) {
	case armnetwork.ProvisioningStateUpdating, armnetwork.ProvisioningStateDeleting, "Creating":
		return true
	}
	return false
}

// room finds the subnet for address translation of a name in a virtual network, or the range that one can be made of.
func (p *Provider) room(ctx context.Context, group, network, name string) (found *armnetwork.Subnet, free string, _ error) {
	out, err := p.networks.Get(ctx, group, network, nil)
	if err != nil {
		return nil, "", told("failed to read virtual network "+network, err)
	}
	if out.Properties == nil || out.Properties.AddressSpace == nil {
		return nil, "", fmt.Errorf("virtual network %s has no address space", network)
	}
	var ranges, taken []string
	for _, r := range out.Properties.AddressSpace.AddressPrefixes {
		ranges = append(ranges, value(r))
	}
	for _, s := range out.Properties.Subnets {
		if s.Properties == nil {
			continue
		}
		if strings.EqualFold(value(s.Name), name) {
			return s, "", nil
		}
		for _, r := range append(s.Properties.AddressPrefixes, s.Properties.AddressPrefix) {
			taken = append(taken, value(r))
		}
	}
	free, err = freeSubnet(ranges, taken)
	return nil, free, err
}

// ensureSubnet makes the subnet of an ID, unless it is there, and has it take Private Link services.
func (p *Provider) ensureSubnet(ctx context.Context, id string) error {
	group, network, name, err := networkOf(id)
	if err != nil {
		return err
	}
	subnet, free, err := p.room(ctx, group, network, name)
	if err != nil {
		return err
	}
	disabled := armnetwork.VirtualNetworkPrivateLinkServiceNetworkPoliciesDisabled
	if subnet == nil {
		subnet = &armnetwork.Subnet{Properties: &armnetwork.SubnetPropertiesFormat{AddressPrefix: &free}}
	} else if value(subnet.Properties.PrivateLinkServiceNetworkPolicies) == disabled {
		return nil
	}
	subnet.Properties.PrivateLinkServiceNetworkPolicies = &disabled
	poller, err := p.subnets.BeginCreateOrUpdate(ctx, group, network, name, *subnet, nil)
	_, err = settle(ctx, "Subnet "+name, poller, err)
	return told("failed to make subnet "+name+" for address translation", err)
}

// errInUse tells that somebody else is in a subnet.
var errInUse = errors.New("the subnet is in use")

// removeSubnet deletes a subnet, and says so by nil.
func (p *Provider) removeSubnet(ctx context.Context, id string) error {
	group, network, name, err := networkOf(id)
	if err != nil {
		return err
	}
	poller, err := p.subnets.BeginDelete(ctx, group, network, name, nil)
	_, err = settle(ctx, "The deletion of subnet "+name, poller, err)
	switch {
	case gone(err):
		return nil
	case is(err, "InUseSubnetCannotBeDeleted"):
		return errInUse
	}
	return told("failed to delete subnet "+name, err)
}

// remove rejects who is connected, deletes a Private Link service, and says so by nil.
func (p *Provider) remove(ctx context.Context, name string) error {
	s, err := p.service(ctx, name)
	if err != nil || s == nil {
		return err
	}
	if value(s.Properties.ProvisioningState) == armnetwork.ProvisioningStateDeleting {
		return waitFor("Private Link service %s is being deleted", name)
	}
	for _, c := range s.Properties.PrivateEndpointConnections {
		if err := p.reject(ctx, name, c); err != nil {
			return err
		}
	}
	poller, err := p.services.BeginDelete(ctx, p.Group, name, nil)
	_, err = settle(ctx, "The deletion of Private Link service "+name, poller, err)
	if gone(err) {
		return nil
	}
	return told("failed to delete Private Link service "+name, err)
}

// reject ends a connection, and removes one that was rejected before, which Azure would keep the service for.
func (p *Provider) reject(ctx context.Context, service string, c *armnetwork.PrivateEndpointConnection) error {
	what := "failed to reject a connection to Private Link service " + service
	state := ""
	if c.Properties != nil && c.Properties.PrivateLinkServiceConnectionState != nil {
		state = value(c.Properties.PrivateLinkServiceConnectionState.Status)
	}
	if state == "Approved" || state == "Pending" {
		_, err := p.services.UpdatePrivateEndpointConnection(ctx, p.Group, service, value(c.Name), armnetwork.PrivateEndpointConnection{
			Name: c.Name, Properties: &armnetwork.PrivateEndpointConnectionProperties{PrivateLinkServiceConnectionState: &armnetwork.PrivateLinkServiceConnectionState{
				Status: to.Ptr("Rejected"), Description: to.Ptr("the hosted cluster is being deleted"),
			}},
		}, nil)
		if err != nil && !gone(err) {
			return told(what, err)
		}
	}
	poller, err := p.services.BeginDeletePrivateEndpointConnection(ctx, p.Group, service, value(c.Name), nil)
	_, err = settle(ctx, "The end of a connection to Private Link service "+service, poller, err)
	if gone(err) {
		return nil
	}
	return told(what, err)
}
