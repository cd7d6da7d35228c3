package privatelink

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v6"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/privatedns/armprivatedns"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Consumer calls Azure as a hosted cluster's control plane. As in Provider, its clients are no interfaces.
type Consumer struct {
	endpoints  *armnetwork.PrivateEndpointsClient
	interfaces *armnetwork.InterfacesClient
	zones      *armprivatedns.PrivateZonesClient
	links      *armprivatedns.VirtualNetworkLinksClient
	records    *armprivatedns.RecordSetsClient
}

// NewConsumer makes one. It makes no request.
func NewConsumer(at Location) (*Consumer, error) {
	n, err := armnetwork.NewClientFactory(at.Subscription, at.Token, at.Options)
	if err != nil {
		return nil, fmt.Errorf("making a client of Azure: %w", err)
	}
	d, err := armprivatedns.NewClientFactory(at.Subscription, at.Token, at.Options)
	if err != nil {
		return nil, fmt.Errorf("making a client of Azure's DNS: %w", err)
	}
	return &Consumer{n.NewPrivateEndpointsClient(), n.NewInterfacesClient(), d.NewPrivateZonesClient(), d.NewVirtualNetworkLinksClient(), d.NewRecordSetsClient()}, nil
}

// errNotApproved is about a connection that isn't let through.
type errNotApproved struct{ waiting }

// endpointName is the name of a private endpoint, in the resource group of the hosted cluster.
func endpointName(obj *hyperv1.AzurePrivateLinkService) string {
	return lastOf(obj.Status.PrivateEndpointID, obj.Name+"-pe")
}

// tagsOf are those of everything that is made in the hosted cluster's resource group.
func tagsOf(hcp *hyperv1.HostedControlPlane, kind string) map[string]*string {
	return map[string]*string{clusterTag + hcp.Spec.InfraID: to.Ptr(owned), typeTag: to.Ptr(kind)}
}

// ours tells whether something bears the cluster's tag.
func ours(tags map[string]*string, hcp *hyperv1.HostedControlPlane) bool {
	return value(tags[clusterTag+hcp.Spec.InfraID]) == owned
}

// endpoint is the private endpoint, nil when there is none. One of another cluster is an error.
func (c *Consumer) endpoint(ctx context.Context, obj *hyperv1.AzurePrivateLinkService, hcp *hyperv1.HostedControlPlane) (*armnetwork.PrivateEndpoint, error) {
	name := endpointName(obj)
	out, err := c.endpoints.Get(ctx, obj.Spec.ResourceGroupName, name, nil)
	if gone(err) {
		return nil, nil
	} else if err != nil {
		return nil, told("failed to find private endpoint "+name, err)
	}
	if !ours(out.Tags, hcp) && obj.Status.PrivateEndpointID == "" {
		return nil, fmt.Errorf("private endpoint %s of resource group %s isn't this cluster's (it lacks tag %s): give each hosted cluster a resource group of its own, or remove the endpoint",
			name, obj.Spec.ResourceGroupName, clusterTag+hcp.Spec.InfraID)
	}
	if out.Properties == nil {
		out.Properties = &armnetwork.PrivateEndpointProperties{}
	}
	return &out.PrivateEndpoint, nil
}

// stateOf is what became of the connection of an endpoint, and what was said about it.
func stateOf(e *armnetwork.PrivateEndpoint) (state, description string) {
	for _, list := range [][]*armnetwork.PrivateLinkServiceConnection{e.Properties.ManualPrivateLinkServiceConnections, e.Properties.PrivateLinkServiceConnections} {
		for _, c := range list {
			if c.Properties != nil && c.Properties.PrivateLinkServiceConnectionState != nil {
				return value(c.Properties.PrivateLinkServiceConnectionState.Status), value(c.Properties.PrivateLinkServiceConnectionState.Description)
			}
		}
	}
	return "", ""
}

// outdated tells why another endpoint has to take the place of one; empty: none has to.
func outdated(e *armnetwork.PrivateEndpoint, alias string) string {
	state, _ := stateOf(e)
	switch made := value(e.Tags[aliasTag]); {
	case made != "" && made != alias:
		return "it leads to a Private Link service of before"
	case state == "Disconnected":
		return "its Private Link service is gone"
	case value(e.Properties.ProvisioningState) == armnetwork.ProvisioningStateFailed:
		return "Azure failed to make it"
	}
	return ""
}

// ensureEndpoint makes the private endpoint, notes its ID and address, and waits for its connection.
func (c *Consumer) ensureEndpoint(ctx context.Context, obj *hyperv1.AzurePrivateLinkService, hcp *hyperv1.HostedControlPlane) error {
	group, name, alias := obj.Spec.ResourceGroupName, endpointName(obj), obj.Status.PrivateLinkServiceAlias
	e, err := c.endpoint(ctx, obj, hcp)
	if err != nil {
		return err
	}
	if e != nil {
		if value(e.Properties.ProvisioningState) == armnetwork.ProvisioningStateDeleting {
			return waitFor("Private endpoint %s is being deleted", name)
		}
		if why := outdated(e, alias); why != "" {
			if err := c.removeEndpoint(ctx, obj, hcp); err != nil {
				return err
			}
			obj.Status.PrivateEndpointID, obj.Status.PrivateEndpointIP = "", ""
			return waitFor("Private endpoint %s is replaced: %s", name, why)
		}
	}
	if e == nil {
		tags := tagsOf(hcp, typeEndpoint)
		tags[aliasTag] = &alias
		subnet := string(obj.Spec.GuestSubnetID)
		poller, err := c.endpoints.BeginCreateOrUpdate(ctx, group, name, armnetwork.PrivateEndpoint{
			Location: &obj.Spec.Location, Tags: tags,
			Properties: &armnetwork.PrivateEndpointProperties{
				Subnet: &armnetwork.Subnet{ID: &subnet},
				ManualPrivateLinkServiceConnections: []*armnetwork.PrivateLinkServiceConnection{{
					Name: &name, Properties: &armnetwork.PrivateLinkServiceConnectionProperties{PrivateLinkServiceID: &alias, RequestMessage: to.Ptr("hosted cluster " + hcp.Spec.InfraID)},
				}},
			},
		}, nil)
		out, err := settle(ctx, "Private endpoint "+name, poller, err)
		if err != nil {
			return told("failed to create private endpoint "+name, err)
		}
		if e = &out.PrivateEndpoint; e.Properties == nil {
			return waitFor("Private endpoint %s is being made", name)
		}
	}
	obj.Status.PrivateEndpointID = idOf(string(obj.Spec.SubscriptionID), group, "privateEndpoints", name)
	if state, description := stateOf(e); state != "Approved" {
		return &errNotApproved{waiting{strings.TrimSuffix(fmt.Sprintf("The connection of private endpoint %s is %s: approve it at the Private Link service, or name the subscription in "+
			"spec.platform.azure.private.privateLink.additionalAllowedSubscriptions. %s", name, state, description), " "), prerequisite}}
	}
	ip, err := c.address(ctx, e)
	if err != nil {
		return err
	}
	obj.Status.PrivateEndpointIP = hyperv1.IPAddress(ip)
	return nil
}

// address is that of an endpoint, which its network interface has.
func (c *Consumer) address(ctx context.Context, e *armnetwork.PrivateEndpoint) (string, error) {
	if len(e.Properties.NetworkInterfaces) == 0 {
		return "", waitFor("Private endpoint %s has no network interface yet", value(e.Name))
	}
	id := value(e.Properties.NetworkInterfaces[0].ID)
	parts := strings.Split(id, "/")
	if len(parts) != 9 {
		return "", fmt.Errorf("%q is no ID of a network interface", id)
	}
	out, err := c.interfaces.Get(ctx, parts[4], parts[8], nil)
	if err != nil {
		return "", told("failed to read network interface "+parts[8], err)
	}
	if out.Properties != nil {
		for _, ip := range out.Properties.IPConfigurations {
			if ip.Properties != nil && value(ip.Properties.PrivateIPAddress) != "" {
				return value(ip.Properties.PrivateIPAddress), nil
			}
		}
	}
	return "", waitFor("Private endpoint %s has no address yet", value(e.Name))
}

// removeEndpoint deletes the private endpoint, and says so by nil.
func (c *Consumer) removeEndpoint(ctx context.Context, obj *hyperv1.AzurePrivateLinkService, hcp *hyperv1.HostedControlPlane) error {
	name := endpointName(obj)
	out, err := c.endpoints.Get(ctx, obj.Spec.ResourceGroupName, name, nil)
	if gone(err) || err == nil && !ours(out.Tags, hcp) && obj.Status.PrivateEndpointID == "" {
		return nil // none, or another cluster's
	} else if err != nil {
		return told("failed to find private endpoint "+name, err)
	}
	if out.Properties != nil && value(out.Properties.ProvisioningState) == armnetwork.ProvisioningStateDeleting {
		return waitFor("Private endpoint %s is being deleted", name)
	}
	poller, err := c.endpoints.BeginDelete(ctx, obj.Spec.ResourceGroupName, name, nil)
	if _, err = settle(ctx, "The deletion of private endpoint "+name, poller, err); gone(err) {
		return nil
	}
	return told("failed to delete private endpoint "+name, err)
}

// remove deletes records, zones and the endpoint, and says so by nil.
func (c *Consumer) remove(ctx context.Context, obj *hyperv1.AzurePrivateLinkService, hcp *hyperv1.HostedControlPlane) error {
	if err := errors.Join(c.removeLocal(ctx, obj, hcp), c.removeBase(ctx, obj, hcp)); err != nil {
		return err
	}
	return c.removeEndpoint(ctx, obj, hcp)
}
