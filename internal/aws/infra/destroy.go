package infra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/fault"
)

// DestroyOptions say what to remove.
type DestroyOptions struct {
	InfraID, Name, BaseDomain, BaseDomainPrefix, Region string
	PrivateZonesInClusterAccount                        bool
	// GracePeriod is how long to go on trying; 0: as long as the context lasts.
	GracePeriod time.Duration
}

// Validate tells what is missing.
func (o DestroyOptions) Validate() error {
	return Options{InfraID: o.InfraID, Name: o.Name, BaseDomain: o.BaseDomain, BaseDomainPrefix: o.BaseDomainPrefix, Region: o.Region}.identity()
}

const (
	// passWait is between passes: load balancers, NAT gateways and machines take minutes to go.
	passWait = 5 * time.Second
	// hopeless is after how many passes with the same errors, one of which doesn't pass by itself, there is no use in going on.
	hopeless = 6
)

// ErrLeft is wrapped by the error that Destroy ends with when time was up.
var ErrLeft = errors.New("time is up, and something is left")

// Destroy removes what carries the cluster's tag, or is in its VPC, pass by pass until nothing is left but volumes and snapshots, which it names. It can be
// interrupted and run again at any time.
func Destroy(ctx context.Context, o DestroyOptions, a Accounts, s Surroundings) error {
	if err := o.Validate(); err != nil {
		return err
	}
	s = s.filled()
	var last []string
	var same int
	var spent time.Duration
	for {
		w := &wreck{Surroundings: s, o: o, a: a, net: a.network().ec2}
		w.pass(ctx)
		if len(w.errs) == 0 {
			w.farewell(ctx)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		texts := w.texts()
		if slices.Equal(texts, last) {
			same++
		} else {
			same, last = 0, texts
			for _, text := range texts {
				s.Log("waiting: %s", text)
			}
		}
		if w.final(same >= hopeless) {
			return w.join(errors.New("can't be removed"))
		}
		if o.GracePeriod > 0 && spent >= o.GracePeriod {
			return w.join(ErrLeft)
		}
		if err := s.Wait(ctx, passWait); err != nil {
			return err
		}
		spent += passWait
	}
}

// wreck is one pass of removing.
type wreck struct {
	Surroundings
	o    DestroyOptions
	a    Accounts
	net  *ec2.Client
	errs []error
}

// try notes an error, unless it says that the thing is gone already.
func (w *wreck) try(what string, err error) bool {
	if err == nil || fault.Gone(err) {
		return true
	}
	w.errs = append(w.errs, &blocked{what: what, err: err})
	return false
}

// blocked is something that is still there, and why.
type blocked struct {
	what string
	err  error
}

func (b *blocked) Error() string { return b.what + ": " + fault.Explain(b.err).Error() }
func (b *blocked) Unwrap() error { return b.err }

func (w *wreck) texts() []string {
	var list []string
	for _, err := range w.errs {
		list = append(list, err.Error())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (w *wreck) join(why error) error {
	return fmt.Errorf("infrastructure %s: %w: %s", w.o.InfraID, why, strings.Join(w.texts(), "; "))
}

// final tells that no further pass is of use: nothing but denied calls, or one that others wait for in vain.
func (w *wreck) final(stuck bool) bool {
	some, all := false, true
	for _, err := range w.errs {
		denied := fault.Denied(err)
		some, all = some || denied, all && denied
	}
	return all || (some && stuck)
}

// pass tries everything once, in an order in which most things let go of each other.
func (w *wreck) pass(ctx context.Context) {
	w.instances(ctx)
	w.internetGateways(ctx)
	w.appsRecords(ctx)
	w.registryBuckets(ctx)
	w.endpointServices(ctx)
	w.vpcs(ctx)
	if len(w.errs) > 0 {
		return // what follows is in use still
	}
	w.addresses(ctx, w.net)
	if w.a.Owner != nil {
		w.addresses(ctx, w.a.Cluster.ec2)
	}
	w.dhcpOptions(ctx)
	w.keyPairs(ctx)
}

// pages goes through a listing of EC2.
func pages(list func(token *string) (*string, error)) error {
	var token *string
	for range maxPages {
		next, err := list(token)
		if err != nil {
			return err
		}
		if token = next; aws.ToString(token) == "" {
			return nil
		}
	}
	return errors.New("the list has no end")
}

func (w *wreck) instances(ctx context.Context) {
	filters := ec2values.Owned(w.o.InfraID, ec2values.Filter("instance-state-name", liveStates...))
	w.try("instances", pages(func(token *string) (*string, error) {
		out, err := w.net.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: filters, NextToken: token})
		if err != nil {
			return nil, err
		}
		var ids []string
		for _, reservation := range out.Reservations {
			for _, instance := range reservation.Instances {
				ids = append(ids, aws.ToString(instance.InstanceId))
			}
		}
		if len(ids) > 0 {
			if _, err := w.net.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids}); err != nil {
				return nil, err
			}
			w.Log("terminating instances %s", strings.Join(ids, ", "))
		}
		return out.NextToken, nil
	}))
}

func (w *wreck) internetGateways(ctx context.Context) {
	out, err := w.net.DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{Filters: ec2values.Owned(w.o.InfraID)})
	if !w.try("internet gateways", err) {
		return
	}
	for _, gateway := range out.InternetGateways {
		id := aws.ToString(gateway.InternetGatewayId)
		free := true
		for _, attachment := range gateway.Attachments {
			_, err := w.net.DetachInternetGateway(ctx, &ec2.DetachInternetGatewayInput{InternetGatewayId: &id, VpcId: attachment.VpcId})
			free = w.try("internet gateway "+id, err) && free
		}
		if free {
			_, err := w.net.DeleteInternetGateway(ctx, &ec2.DeleteInternetGatewayInput{InternetGatewayId: &id})
			w.deleted("internet gateway "+id, err)
		}
	}
}

// deleted notes what became of a request to delete.
func (w *wreck) deleted(what string, err error) {
	if w.try(what, err) && err == nil {
		w.Log("%s deleted", what)
	}
}

func (w *wreck) endpointServices(ctx context.Context) {
	w.try("endpoint services", pages(func(token *string) (*string, error) {
		out, err := w.net.DescribeVpcEndpointServiceConfigurations(ctx, &ec2.DescribeVpcEndpointServiceConfigurationsInput{
			Filters: ec2values.Owned(w.o.InfraID), NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, service := range out.ServiceConfigurations {
			id := aws.ToString(service.ServiceId)
			if !w.try("endpoint service "+id, w.rejectConnections(ctx, id)) {
				continue
			}
			deleted, err := w.net.DeleteVpcEndpointServiceConfigurations(ctx, &ec2.DeleteVpcEndpointServiceConfigurationsInput{ServiceIds: []string{id}})
			if err == nil {
				err = unsuccessful(deleted.Unsuccessful)
			}
			w.deleted("endpoint service "+id, err)
		}
		return out.NextToken, nil
	}))
}

// rejectConnections takes an endpoint service from those who use it: it can't be deleted before.
func (w *wreck) rejectConnections(ctx context.Context, service string) error {
	return pages(func(token *string) (*string, error) {
		out, err := w.net.DescribeVpcEndpointConnections(ctx, &ec2.DescribeVpcEndpointConnectionsInput{
			Filters: []types.Filter{ec2values.Filter("service-id", service)}, NextToken: token})
		if err != nil {
			return nil, err
		}
		var ids []string
		for _, connection := range out.VpcEndpointConnections {
			if !endpointEnded(connection.VpcEndpointState) {
				ids = append(ids, aws.ToString(connection.VpcEndpointId))
			}
		}
		if len(ids) > 0 {
			rejected, err := w.net.RejectVpcEndpointConnections(ctx, &ec2.RejectVpcEndpointConnectionsInput{ServiceId: &service, VpcEndpointIds: ids})
			if err != nil {
				return nil, err
			}
			if err := unsuccessful(rejected.Unsuccessful); err != nil {
				return nil, err
			}
		}
		return out.NextToken, nil
	})
}

func (w *wreck) addresses(ctx context.Context, client *ec2.Client) {
	out, err := client.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{Filters: ec2values.Owned(w.o.InfraID)})
	if !w.try("addresses", err) {
		return
	}
	for _, address := range out.Addresses {
		_, err := client.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: address.AllocationId})
		w.deleted("address "+aws.ToString(address.AllocationId), err)
	}
}

func (w *wreck) dhcpOptions(ctx context.Context) {
	out, err := w.net.DescribeDhcpOptions(ctx, &ec2.DescribeDhcpOptionsInput{Filters: ec2values.Owned(w.o.InfraID)})
	if !w.try("DHCP options", err) {
		return
	}
	for _, options := range out.DhcpOptions {
		_, err := w.net.DeleteDhcpOptions(ctx, &ec2.DeleteDhcpOptionsInput{DhcpOptionsId: options.DhcpOptionsId})
		w.deleted("DHCP options "+aws.ToString(options.DhcpOptionsId), err)
	}
}

// keyPairs removes that of the proxy. A role of the published tool may not list them, and has made none that it could remove.
func (w *wreck) keyPairs(ctx context.Context) {
	out, err := w.net.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{Filters: ec2values.Owned(w.o.InfraID)})
	if fault.Denied(err) {
		w.Log("key pairs were not looked for: %s", fault.Explain(err))
		return
	}
	if !w.try("key pairs", err) {
		return
	}
	for _, pair := range out.KeyPairs {
		_, err := w.net.DeleteKeyPair(ctx, &ec2.DeleteKeyPairInput{KeyName: pair.KeyName})
		w.deleted("key pair "+aws.ToString(pair.KeyName), err)
	}
}
