package privatelink

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v6"
	netfake "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v6/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/privatedns/armprivatedns"
	dnsfake "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/privatedns/armprivatedns/fake"
)

const (
	management = "6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b10"
	guest      = "6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b11"
	friend     = "6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b12"
	guestVNet  = "/subscriptions/" + guest + "/resourceGroups/guest/providers/Microsoft.Network/virtualNetworks/net"
	frontendID = "/subscriptions/" + management + "/resourceGroups/mgmt/providers/Microsoft.Network/loadBalancers/kubernetes-internal/frontendIPConfigurations/"
)

// account is what Azure has, behind the SDK's own fake servers.
type account struct {
	mu        sync.Mutex
	addresses map[string]string // frontends of the load balancer, with their addresses
	services  map[string]*armnetwork.PrivateLinkService
	subnets   map[string]*armnetwork.Subnet
	endpoints map[string]*armnetwork.PrivateEndpoint
	zones     map[string]*armprivatedns.PrivateZone
	links     map[string]*armprivatedns.VirtualNetworkLink // zone/link
	records   map[string]*armprivatedns.RecordSet          // zone/name
	// state is what becomes of connections.
	state string
	// calls are those that change something. The one of a number is carried out, and its answer lost.
	calls []string
	lose  int
	// refuse has a call fail with a code.
	refuse map[string]string
	made   int
	// race is what somebody does right before a record is written.
	race func()
}

func newAccount() *account {
	return &account{
		addresses: map[string]string{"a": "10.0.0.7"}, services: map[string]*armnetwork.PrivateLinkService{}, subnets: map[string]*armnetwork.Subnet{
			"nodes": {Name: to.Ptr("nodes"), Properties: &armnetwork.SubnetPropertiesFormat{AddressPrefix: to.Ptr("10.0.0.0/24")}},
			"other": {Name: to.Ptr("other"), Properties: &armnetwork.SubnetPropertiesFormat{AddressPrefixes: to.SliceOfPtrs("10.0.1.0/25")}},
		},
		endpoints: map[string]*armnetwork.PrivateEndpoint{}, zones: map[string]*armprivatedns.PrivateZone{}, links: map[string]*armprivatedns.VirtualNetworkLink{},
		records: map[string]*armprivatedns.RecordSet{}, state: "Approved", refuse: map[string]string{},
	}
}

// call begins one that changes something, unless it is refused.
func (a *account) call(name string) (refused azfake.ErrorResponder, ok bool) {
	if code := a.refuse[name]; code != "" {
		refused.SetResponseError(http.StatusForbidden, code)
		return refused, false
	}
	a.calls = append(a.calls, name)
	return refused, true
}

// lost says of the last call that its answer gets lost.
func (a *account) lost() (e azfake.ErrorResponder) {
	if a.lose > 0 && len(a.calls) == a.lose {
		e.SetResponseError(http.StatusBadGateway, "BadGateway")
	}
	return e
}

func answer[T any](v T) (r azfake.Responder[T]) {
	r.SetResponse(http.StatusOK, v, nil)
	return r
}

func done[T any](v T) (r azfake.PollerResponder[T]) {
	r.SetTerminalResponse(http.StatusOK, v, nil)
	return r
}

func missing() (e azfake.ErrorResponder) {
	e.SetResponseError(http.StatusNotFound, "ResourceNotFound")
	return e
}

func refuse(code string) (e azfake.ErrorResponder) {
	e.SetResponseError(http.StatusBadRequest, code)
	return e
}

// wire sends requests about zones to one fake, and all others to the other. The fakes know no errors of lists, which it answers itself.
type wire struct {
	*account
	network, dns policy.Transporter
}

func (w wire) Do(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	code := w.refuse["list balancers"]
	parts := strings.Split(r.URL.Path, "/")
	missing := parts[len(parts)-1] == "ALL" && w.zones[parts[len(parts)-2]] == nil
	w.mu.Unlock()
	switch {
	case code != "" && strings.HasSuffix(r.URL.Path, "/loadBalancers"):
		return failed(r, http.StatusForbidden, code), nil
	case missing:
		return failed(r, http.StatusNotFound, "ParentResourceNotFound"), nil
	case strings.Contains(r.URL.Path, "privateDnsZones"):
		return w.dns.Do(r)
	}
	return w.network.Do(r)
}

func failed(r *http.Request, status int, code string) *http.Response {
	return &http.Response{Request: r, StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"error":{"code":%q}}`, code)))}
}

// location is how the account is reached.
func (a *account) location(subscription string) Location {
	network := netfake.NewServerFactoryTransport(&netfake.ServerFactory{
		LoadBalancersServer: a.balancersServer(), PrivateLinkServicesServer: a.servicesServer(), VirtualNetworksServer: a.networksServer(), SubnetsServer: a.subnetsServer(),
		PrivateEndpointsServer: a.endpointsServer(), InterfacesServer: a.interfacesServer(),
	})
	dns := dnsfake.NewServerFactoryTransport(&dnsfake.ServerFactory{PrivateZonesServer: a.zonesServer(), VirtualNetworkLinksServer: a.linksServer(), RecordSetsServer: a.recordsServer()})
	return Location{Subscription: subscription, Group: "mgmt", Token: &azfake.TokenCredential{}, Options: &arm.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: wire{a, network, dns}, Retry: policy.RetryOptions{MaxRetries: -1},
	}}}
}

func (a *account) balancersServer() netfake.LoadBalancersServer {
	return netfake.LoadBalancersServer{NewListPager: func(string, *armnetwork.LoadBalancersClientListOptions) (r azfake.PagerResponder[armnetwork.LoadBalancersClientListResponse]) {
		a.mu.Lock()
		defer a.mu.Unlock()
		b := &armnetwork.LoadBalancer{Name: to.Ptr("kubernetes-internal"), Properties: &armnetwork.LoadBalancerPropertiesFormat{}}
		for id, ip := range a.addresses {
			b.Properties.FrontendIPConfigurations = append(b.Properties.FrontendIPConfigurations, &armnetwork.FrontendIPConfiguration{
				ID: to.Ptr(frontendID + id), Properties: &armnetwork.FrontendIPConfigurationPropertiesFormat{PrivateIPAddress: to.Ptr(ip),
					Subnet: &armnetwork.Subnet{ID: to.Ptr("/subscriptions/" + management + "/resourceGroups/mgmt-net/providers/Microsoft.Network/virtualNetworks/mgmt/subnets/nodes")}},
			})
		}
		r.AddPage(http.StatusOK, armnetwork.LoadBalancersClientListResponse{LoadBalancerListResult: armnetwork.LoadBalancerListResult{Value: []*armnetwork.LoadBalancer{{Name: to.Ptr("public")}}}}, nil)
		r.AddPage(http.StatusOK, armnetwork.LoadBalancersClientListResponse{LoadBalancerListResult: armnetwork.LoadBalancerListResult{Value: []*armnetwork.LoadBalancer{b}}}, nil)
		return r
	}}
}

func (a *account) servicesServer() netfake.PrivateLinkServicesServer {
	return netfake.PrivateLinkServicesServer{
		Get: func(_ context.Context, _, name string, _ *armnetwork.PrivateLinkServicesClientGetOptions) (r azfake.Responder[armnetwork.PrivateLinkServicesClientGetResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.services[name] == nil {
				return r, missing()
			}
			return answer(armnetwork.PrivateLinkServicesClientGetResponse{PrivateLinkService: *a.services[name]}), e
		},
		BeginCreateOrUpdate: func(_ context.Context, _, name string, s armnetwork.PrivateLinkService, _ *armnetwork.PrivateLinkServicesClientBeginCreateOrUpdateOptions) (r azfake.PollerResponder[armnetwork.PrivateLinkServicesClientCreateOrUpdateResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			e, ok := a.call("put service")
			if !ok {
				return r, e
			}
			if live := a.services[name]; live != nil {
				s.Properties.Alias, s.Properties.PrivateEndpointConnections = live.Properties.Alias, live.Properties.PrivateEndpointConnections
			} else {
				a.made++
				s.Properties.Alias = to.Ptr(fmt.Sprintf("%s.%08x-0000-0000-0000-000000000000.westeurope.azure.privatelinkservice", name, a.made))
			}
			s.Name, s.Properties.ProvisioningState = &name, to.Ptr(armnetwork.ProvisioningStateSucceeded)
			a.services[name] = &s
			return done(armnetwork.PrivateLinkServicesClientCreateOrUpdateResponse{PrivateLinkService: s}), a.lost()
		},
		UpdatePrivateEndpointConnection: func(_ context.Context, _, name, connection string, c armnetwork.PrivateEndpointConnection, _ *armnetwork.PrivateLinkServicesClientUpdatePrivateEndpointConnectionOptions) (r azfake.Responder[armnetwork.PrivateLinkServicesClientUpdatePrivateEndpointConnectionResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			e, ok := a.call("reject connection")
			if !ok {
				return r, e
			}
			for _, one := range a.services[name].Properties.PrivateEndpointConnections {
				if *one.Name == connection {
					one.Properties.PrivateLinkServiceConnectionState = c.Properties.PrivateLinkServiceConnectionState
				}
			}
			return answer(armnetwork.PrivateLinkServicesClientUpdatePrivateEndpointConnectionResponse{}), a.lost()
		},
		BeginDeletePrivateEndpointConnection: func(_ context.Context, _, name, connection string, _ *armnetwork.PrivateLinkServicesClientBeginDeletePrivateEndpointConnectionOptions) (r azfake.PollerResponder[armnetwork.PrivateLinkServicesClientDeletePrivateEndpointConnectionResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			e, ok := a.call("delete connection")
			if !ok {
				return r, e
			}
			a.disconnect(a.services[name], connection)
			return done(armnetwork.PrivateLinkServicesClientDeletePrivateEndpointConnectionResponse{}), a.lost()
		},
		BeginDelete: func(_ context.Context, _, name string, _ *armnetwork.PrivateLinkServicesClientBeginDeleteOptions) (r azfake.PollerResponder[armnetwork.PrivateLinkServicesClientDeleteResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if s := a.services[name]; s != nil && len(s.Properties.PrivateEndpointConnections) > 0 {
				return r, refuse("PrivateLinkServiceCannotBeDeletedBecauseItHasPrivateEndpointConnections")
			}
			e, ok := a.call("delete service")
			if !ok {
				return r, e
			}
			delete(a.services, name)
			return done(armnetwork.PrivateLinkServicesClientDeleteResponse{}), a.lost()
		},
	}
}

// disconnect ends a connection, seen from both sides.
func (a *account) disconnect(s *armnetwork.PrivateLinkService, connection string) {
	var left []*armnetwork.PrivateEndpointConnection
	for _, c := range s.Properties.PrivateEndpointConnections {
		if *c.Name != connection {
			left = append(left, c)
		}
	}
	s.Properties.PrivateEndpointConnections = left
	if e := a.endpoints[connection]; e != nil {
		e.Properties.ManualPrivateLinkServiceConnections[0].Properties.PrivateLinkServiceConnectionState.Status = to.Ptr("Disconnected")
	}
}

func (a *account) networksServer() netfake.VirtualNetworksServer {
	return netfake.VirtualNetworksServer{Get: func(_ context.Context, group, name string, _ *armnetwork.VirtualNetworksClientGetOptions) (r azfake.Responder[armnetwork.VirtualNetworksClientGetResponse], e azfake.ErrorResponder) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if group != "mgmt-net" || name != "mgmt" {
			return r, missing()
		}
		n := armnetwork.VirtualNetwork{Properties: &armnetwork.VirtualNetworkPropertiesFormat{AddressSpace: &armnetwork.AddressSpace{AddressPrefixes: to.SliceOfPtrs("10.0.0.0/16")}}}
		for _, s := range a.subnets {
			n.Properties.Subnets = append(n.Properties.Subnets, s)
		}
		return answer(armnetwork.VirtualNetworksClientGetResponse{VirtualNetwork: n}), e
	}}
}

func (a *account) subnetsServer() netfake.SubnetsServer {
	return netfake.SubnetsServer{
		BeginCreateOrUpdate: func(_ context.Context, _, _, name string, s armnetwork.Subnet, _ *armnetwork.SubnetsClientBeginCreateOrUpdateOptions) (r azfake.PollerResponder[armnetwork.SubnetsClientCreateOrUpdateResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			e, ok := a.call("put subnet")
			if !ok {
				return r, e
			}
			s.Name = &name
			a.subnets[name] = &s
			return done(armnetwork.SubnetsClientCreateOrUpdateResponse{Subnet: s}), a.lost()
		},
		BeginDelete: func(_ context.Context, _, _, name string, _ *armnetwork.SubnetsClientBeginDeleteOptions) (r azfake.PollerResponder[armnetwork.SubnetsClientDeleteResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.subnets[name] == nil {
				return r, missing()
			}
			for _, s := range a.services {
				if strings.HasSuffix(*s.Properties.IPConfigurations[0].Properties.Subnet.ID, "/"+name) {
					return r, refuse("InUseSubnetCannotBeDeleted")
				}
			}
			e, ok := a.call("delete subnet")
			if !ok {
				return r, e
			}
			delete(a.subnets, name)
			return done(armnetwork.SubnetsClientDeleteResponse{}), a.lost()
		},
	}
}

func (a *account) endpointsServer() netfake.PrivateEndpointsServer {
	return netfake.PrivateEndpointsServer{
		Get: func(_ context.Context, _, name string, _ *armnetwork.PrivateEndpointsClientGetOptions) (r azfake.Responder[armnetwork.PrivateEndpointsClientGetResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.endpoints[name] == nil {
				return r, missing()
			}
			return answer(armnetwork.PrivateEndpointsClientGetResponse{PrivateEndpoint: *a.endpoints[name]}), e
		},
		BeginCreateOrUpdate: func(_ context.Context, group, name string, p armnetwork.PrivateEndpoint, _ *armnetwork.PrivateEndpointsClientBeginCreateOrUpdateOptions) (r azfake.PollerResponder[armnetwork.PrivateEndpointsClientCreateOrUpdateResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			e, ok := a.call("put endpoint")
			if !ok {
				return r, e
			}
			c := p.Properties.ManualPrivateLinkServiceConnections[0].Properties
			for _, s := range a.services {
				if *s.Properties.Alias == *c.PrivateLinkServiceID {
					s.Properties.PrivateEndpointConnections = append(s.Properties.PrivateEndpointConnections, &armnetwork.PrivateEndpointConnection{
						Name: &name, Properties: &armnetwork.PrivateEndpointConnectionProperties{PrivateLinkServiceConnectionState: &armnetwork.PrivateLinkServiceConnectionState{Status: to.Ptr(a.state)}}})
				}
			}
			a.made++
			c.PrivateLinkServiceConnectionState = &armnetwork.PrivateLinkServiceConnectionState{Status: to.Ptr(a.state)}
			p.Name, p.Properties.NetworkInterfaces = &name, []*armnetwork.Interface{{ID: to.Ptr(idOf(guest, group, "networkInterfaces", fmt.Sprintf("nic-%d", a.made)))}}
			a.endpoints[name] = &p
			return done(armnetwork.PrivateEndpointsClientCreateOrUpdateResponse{PrivateEndpoint: p}), a.lost()
		},
		BeginDelete: func(_ context.Context, _, name string, _ *armnetwork.PrivateEndpointsClientBeginDeleteOptions) (r azfake.PollerResponder[armnetwork.PrivateEndpointsClientDeleteResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			e, ok := a.call("delete endpoint")
			if !ok {
				return r, e
			}
			delete(a.endpoints, name)
			for _, s := range a.services {
				a.disconnect(s, name)
			}
			return done(armnetwork.PrivateEndpointsClientDeleteResponse{}), a.lost()
		},
	}
}

func (a *account) interfacesServer() netfake.InterfacesServer {
	return netfake.InterfacesServer{Get: func(_ context.Context, _, name string, _ *armnetwork.InterfacesClientGetOptions) (r azfake.Responder[armnetwork.InterfacesClientGetResponse], e azfake.ErrorResponder) {
		return answer(armnetwork.InterfacesClientGetResponse{Interface: armnetwork.Interface{Properties: &armnetwork.InterfacePropertiesFormat{IPConfigurations: []*armnetwork.InterfaceIPConfiguration{
			{Properties: &armnetwork.InterfaceIPConfigurationPropertiesFormat{PrivateIPAddress: to.Ptr("192.168.0." + strings.TrimPrefix(name, "nic-"))}}}}}}), e
	}}
}

func (a *account) zonesServer() dnsfake.PrivateZonesServer {
	return dnsfake.PrivateZonesServer{
		Get: func(_ context.Context, _, zone string, _ *armprivatedns.PrivateZonesClientGetOptions) (r azfake.Responder[armprivatedns.PrivateZonesClientGetResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.zones[zone] == nil {
				return r, missing()
			}
			return answer(armprivatedns.PrivateZonesClientGetResponse{PrivateZone: *a.zones[zone]}), e
		},
		BeginCreateOrUpdate: func(_ context.Context, _, zone string, z armprivatedns.PrivateZone, _ *armprivatedns.PrivateZonesClientBeginCreateOrUpdateOptions) (r azfake.PollerResponder[armprivatedns.PrivateZonesClientCreateOrUpdateResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			e, ok := a.call("put zone")
			if !ok {
				return r, e
			}
			a.zones[zone] = &z
			return done(armprivatedns.PrivateZonesClientCreateOrUpdateResponse{PrivateZone: z}), a.lost()
		},
		BeginDelete: func(_ context.Context, _, zone string, _ *armprivatedns.PrivateZonesClientBeginDeleteOptions) (r azfake.PollerResponder[armprivatedns.PrivateZonesClientDeleteResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			for key := range a.links {
				if strings.HasPrefix(key, zone+"/") {
					return r, refuse("CannotDeleteResource")
				}
			}
			e, ok := a.call("delete zone")
			if !ok {
				return r, e
			}
			delete(a.zones, zone)
			return done(armprivatedns.PrivateZonesClientDeleteResponse{}), a.lost()
		},
	}
}

func (a *account) linksServer() dnsfake.VirtualNetworkLinksServer {
	return dnsfake.VirtualNetworkLinksServer{
		NewListPager: func(_, zone string, _ *armprivatedns.VirtualNetworkLinksClientListOptions) (r azfake.PagerResponder[armprivatedns.VirtualNetworkLinksClientListResponse]) {
			a.mu.Lock()
			defer a.mu.Unlock()
			page := armprivatedns.VirtualNetworkLinksClientListResponse{}
			for key, l := range a.links {
				if strings.HasPrefix(key, zone+"/") {
					page.Value = append(page.Value, l)
				}
			}
			r.AddPage(http.StatusOK, page, nil)
			return r
		},
		BeginCreateOrUpdate: func(_ context.Context, _, zone, link string, l armprivatedns.VirtualNetworkLink, _ *armprivatedns.VirtualNetworkLinksClientBeginCreateOrUpdateOptions) (r azfake.PollerResponder[armprivatedns.VirtualNetworkLinksClientCreateOrUpdateResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			e, ok := a.call("put link")
			if !ok {
				return r, e
			}
			l.Name = &link
			a.links[zone+"/"+link] = &l
			return done(armprivatedns.VirtualNetworkLinksClientCreateOrUpdateResponse{VirtualNetworkLink: l}), a.lost()
		},
		BeginDelete: func(_ context.Context, _, zone, link string, _ *armprivatedns.VirtualNetworkLinksClientBeginDeleteOptions) (r azfake.PollerResponder[armprivatedns.VirtualNetworkLinksClientDeleteResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.links[zone+"/"+link] == nil {
				return r, missing()
			}
			e, ok := a.call("delete link")
			if !ok {
				return r, e
			}
			delete(a.links, zone+"/"+link)
			return done(armprivatedns.VirtualNetworkLinksClientDeleteResponse{}), a.lost()
		},
	}
}

func (a *account) recordsServer() dnsfake.RecordSetsServer {
	return dnsfake.RecordSetsServer{
		Get: func(_ context.Context, _, zone string, _ armprivatedns.RecordType, name string, _ *armprivatedns.RecordSetsClientGetOptions) (r azfake.Responder[armprivatedns.RecordSetsClientGetResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.records[zone+"/"+name] == nil {
				return r, missing()
			}
			return answer(armprivatedns.RecordSetsClientGetResponse{RecordSet: *a.records[zone+"/"+name]}), e
		},
		CreateOrUpdate: func(_ context.Context, _, zone string, _ armprivatedns.RecordType, name string, s armprivatedns.RecordSet, o *armprivatedns.RecordSetsClientCreateOrUpdateOptions) (r azfake.Responder[armprivatedns.RecordSetsClientCreateOrUpdateResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.race != nil {
				a.race()
				a.race = nil
			}
			e, ok := a.call("put record")
			if !ok {
				return r, e
			}
			if o == nil {
				o = &armprivatedns.RecordSetsClientCreateOrUpdateOptions{}
			}
			if live := a.records[zone+"/"+name]; o.IfNoneMatch != nil && live != nil || o.IfMatch != nil && (live == nil || value(live.Etag) != *o.IfMatch) {
				e.SetResponseError(http.StatusPreconditionFailed, "PreconditionFailed")
				return r, e
			}
			a.made++
			s.Name, s.Type, s.Etag = &name, to.Ptr("Microsoft.Network/privateDnsZones/A"), to.Ptr(fmt.Sprint("etag-", a.made))
			a.records[zone+"/"+name] = &s
			return answer(armprivatedns.RecordSetsClientCreateOrUpdateResponse{RecordSet: s}), a.lost()
		},
		Delete: func(_ context.Context, _, zone string, _ armprivatedns.RecordType, name string, _ *armprivatedns.RecordSetsClientDeleteOptions) (r azfake.Responder[armprivatedns.RecordSetsClientDeleteResponse], e azfake.ErrorResponder) {
			a.mu.Lock()
			defer a.mu.Unlock()
			e, ok := a.call("delete record")
			if !ok {
				return r, e
			}
			delete(a.records, zone+"/"+name)
			return answer(armprivatedns.RecordSetsClientDeleteResponse{}), a.lost()
		},
		NewListPager: func(_, zone string, _ *armprivatedns.RecordSetsClientListOptions) (r azfake.PagerResponder[armprivatedns.RecordSetsClientListResponse]) {
			a.mu.Lock()
			defer a.mu.Unlock()
			page := armprivatedns.RecordSetsClientListResponse{}
			page.Value = append(page.Value, &armprivatedns.RecordSet{Name: to.Ptr("@"), Type: to.Ptr("Microsoft.Network/privateDnsZones/SOA")})
			for key, s := range a.records {
				if strings.HasPrefix(key, zone+"/") {
					page.Value = append(page.Value, s)
				}
			}
			r.AddPage(http.StatusOK, page, nil)
			return r
		},
	}
}
