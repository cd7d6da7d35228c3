package privatelink

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/session"
	"hcp.internal/platform/internal/aws/tags"
)

// maxPages bounds lists of AWS: a region has hundreds of endpoint services, not ten thousands.
const maxPages = 50

// Provider calls AWS as the management cluster. Its clients are the SDK's own types and no interfaces: through an interface, programs would link every call
// that there is.
type Provider struct {
	ec2 *ec2.Client
	elb *elb.Client
}

// OpenProvider makes one from the environment of the process. It makes no request.
func OpenProvider(ctx context.Context, region string) (*Provider, error) {
	cfg, err := session.Load(ctx, session.Options{Agent: "hypershift-operator", Region: region})
	if err != nil {
		return nil, err
	}
	return &Provider{ec2.NewFromConfig(cfg), elb.NewFromConfig(cfg)}, nil
}

// once makes a client ask only once: whether a lost answer made something is found out by looking, not by asking again.
func once(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }

// wish is what an endpoint service is to be.
type wish struct {
	// recorded is the name of the one that was made; empty: none is known.
	recorded, balancer string
	tags               tags.Set
	principals         []string
}

// serviceTags are those of an endpoint service. infrastructure is the management cluster's; empty: it has none.
func serviceTags(obj *hyperv1.AWSEndpointService, infrastructure string) tags.Set {
	set := tags.Set{}
	for _, t := range obj.Spec.ResourceTags {
		set[t.Key] = t.Value
	}
	if infrastructure != "" {
		set[tags.Cluster(infrastructure)] = tags.Owned
	}
	return set
}

// ensure makes what is missing and gives the name of the endpoint service, empty when there is none. It may be interrupted anywhere.
func (p *Provider) ensure(ctx context.Context, w wish) (name string, _ error) {
	balancer, err := p.balancer(ctx, w.balancer)
	if err != nil {
		return w.recorded, err
	}
	service, err := p.recorded(ctx, w.recorded)
	if err != nil {
		return w.recorded, err
	}
	arn := aws.ToString(balancer.LoadBalancerArn)
	if service != nil && !slices.Contains(service.NetworkLoadBalancerArns, arn) {
		// It leads to a load balancer of before. Endpoints on it are made anew.
		if err := p.remove(ctx, w.recorded, ""); err != nil {
			return w.recorded, err
		}
		service = nil
	}
	if service == nil {
		if balancer.State == nil || balancer.State.Code != elbtypes.LoadBalancerStateEnumActive {
			return "", waitFor("Load balancer %s is not active yet", w.balancer)
		}
		if service, err = p.find(ctx, func(arns []string) bool { return slices.Contains(arns, arn) }); err == nil && service == nil {
			service, err = p.create(ctx, arn, w.tags)
		}
		if err != nil {
			return "", err
		}
	}
	return aws.ToString(service.ServiceName), p.permit(ctx, aws.ToString(service.ServiceId), w.principals)
}

// balancer looks the load balancer up.
func (p *Provider) balancer(ctx context.Context, name string) (*elbtypes.LoadBalancer, error) {
	out, err := p.elb.DescribeLoadBalancers(ctx, &elb.DescribeLoadBalancersInput{Names: []string{name}})
	if fault.Is(err, "LoadBalancerNotFound") || err == nil && len(out.LoadBalancers) == 0 {
		return nil, fmt.Errorf("load balancer %s does not exist in the operator's region: it is made for a Service of the control plane by the management cluster's cloud provider", name)
	} else if err != nil {
		return nil, fault.Told("failed to find load balancer "+name, err)
	}
	return &out.LoadBalancers[0], nil
}

// recorded is the endpoint service of this name; nil: there is none any more.
func (p *Provider) recorded(ctx context.Context, name string) (*types.ServiceConfiguration, error) {
	id := serviceID(name)
	if id == "" {
		return nil, nil
	}
	out, err := p.ec2.DescribeVpcEndpointServiceConfigurations(ctx, &ec2.DescribeVpcEndpointServiceConfigurationsInput{ServiceIds: []string{id}})
	if fault.Gone(err) {
		return nil, nil
	} else if err != nil {
		return nil, fault.Told("failed to find endpoint service "+name, err)
	}
	for i := range out.ServiceConfigurations {
		if one := &out.ServiceConfigurations[i]; aws.ToString(one.ServiceId) == id && alive(one) {
			return one, nil
		}
	}
	return nil, nil
}

func alive(s *types.ServiceConfiguration) bool {
	switch state(string(s.ServiceState)) {
	case "deleting", "deleted", "failed":
		return false
	}
	return true
}

// find looks for an endpoint service by its load balancers; nil: there is none. One load balancer has one endpoint service at most.
func (p *Provider) find(ctx context.Context, leadsTo func(arns []string) bool) (*types.ServiceConfiguration, error) {
	in := &ec2.DescribeVpcEndpointServiceConfigurationsInput{}
	for range maxPages {
		out, err := p.ec2.DescribeVpcEndpointServiceConfigurations(ctx, in)
		if err != nil {
			return nil, fault.Told("failed to list endpoint services", err)
		}
		for i := range out.ServiceConfigurations {
			if one := &out.ServiceConfigurations[i]; leadsTo(one.NetworkLoadBalancerArns) && alive(one) {
				return one, nil
			}
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return nil, nil
		}
	}
	return nil, nil
}

func (p *Provider) create(ctx context.Context, arn string, set tags.Set) (*types.ServiceConfiguration, error) {
	in := &ec2.CreateVpcEndpointServiceConfigurationInput{AcceptanceRequired: aws.Bool(false), NetworkLoadBalancerArns: []string{arn}}
	if len(set) > 0 {
		in.TagSpecifications = ec2values.Tagged(types.ResourceTypeVpcEndpointService, set)
	}
	out, err := p.ec2.CreateVpcEndpointServiceConfiguration(ctx, in, once)
	if fault.Is(err, "InvalidParameter") { // perhaps there is one since
		if service, failed := p.find(ctx, func(arns []string) bool { return slices.Contains(arns, arn) }); service != nil || failed != nil {
			return service, failed
		}
	}
	if err != nil {
		return nil, fault.Told("failed to create an endpoint service for the load balancer", err)
	}
	return out.ServiceConfiguration, nil
}

// permit lets those connect who may, and nobody else.
func (p *Provider) permit(ctx context.Context, id string, want []string) error {
	var have []string
	in := &ec2.DescribeVpcEndpointServicePermissionsInput{ServiceId: &id}
	for range maxPages {
		out, err := p.ec2.DescribeVpcEndpointServicePermissions(ctx, in)
		if err != nil {
			return fault.Told("failed to read who may connect to endpoint service "+id, err)
		}
		for _, one := range out.AllowedPrincipals {
			have = append(have, aws.ToString(one.Principal))
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			break
		}
	}
	add, remove := difference(have, want)
	if len(add)+len(remove) == 0 {
		return nil
	}
	_, err := p.ec2.ModifyVpcEndpointServicePermissions(ctx, &ec2.ModifyVpcEndpointServicePermissionsInput{ServiceId: &id, AddAllowedPrincipals: add, RemoveAllowedPrincipals: remove})
	return fault.Told("failed to change who may connect to endpoint service "+id, err)
}

// remove deletes an endpoint service, and says so by nil. Without a name it looks for the one of the load balancer: its maker may have died before it
// wrote the name down.
func (p *Provider) remove(ctx context.Context, name, balancer string) error {
	id := serviceID(name)
	if id == "" && balancer != "" {
		service, err := p.find(ctx, func(arns []string) bool {
			for _, arn := range arns {
				if ownsBalancer(arn, balancer) {
					return true
				}
			}
			return false
		})
		if fault.Denied(err) {
			return nil // with these credentials none was made
		} else if err != nil || service == nil {
			return err
		}
		id = aws.ToString(service.ServiceId)
	}
	if id == "" {
		return nil
	}
	out, err := p.ec2.DeleteVpcEndpointServiceConfigurations(ctx, &ec2.DeleteVpcEndpointServiceConfigurationsInput{ServiceIds: []string{id}})
	what := "failed to delete endpoint service " + id
	if err != nil {
		if fault.Gone(err) {
			return nil
		}
		if rejected := p.disconnect(ctx, id); rejected != nil {
			return rejected
		}
		return fault.Told(what, err)
	}
	if len(out.Unsuccessful) == 0 || out.Unsuccessful[0].Error == nil {
		return nil
	}
	switch code := aws.ToString(out.Unsuccessful[0].Error.Code); code {
	case "InvalidVpcEndpointService.NotFound", "InvalidVpcEndpointServiceId.NotFound":
		return nil
	case "ExistingVpcEndpointConnections":
		if err := p.disconnect(ctx, id); err != nil {
			return err
		}
		return fmt.Errorf("%s, code: %s", what, code)
	default:
		return fault.Coded(what, code)
	}
}

// disconnect rejects the connections of an endpoint service. Its error is a waiting one while some end; nil: there are none.
func (p *Provider) disconnect(ctx context.Context, id string) error {
	var list []types.VpcEndpointConnection
	in := &ec2.DescribeVpcEndpointConnectionsInput{Filters: []types.Filter{ec2values.Filter("service-id", id)}}
	for range maxPages {
		out, err := p.ec2.DescribeVpcEndpointConnections(ctx, in)
		if err != nil {
			return fault.Told("failed to list the connections of endpoint service "+id, err)
		}
		list = append(list, out.VpcEndpointConnections...)
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			break
		}
	}
	reject, ending := disconnect(list)
	if len(reject) > 0 {
		if _, err := p.ec2.RejectVpcEndpointConnections(ctx, &ec2.RejectVpcEndpointConnectionsInput{ServiceId: &id, VpcEndpointIds: reject}); err != nil {
			return fault.Told("failed to reject the connections of endpoint service "+id, err)
		}
		ending = true
	}
	if ending {
		return waitFor("Connections of endpoint service %s are ending", id)
	}
	return nil
}
