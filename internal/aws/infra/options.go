// Package infra makes and removes the network and DNS zones of a hosted cluster on AWS.
//
// Everything that it makes carries the cluster's tag from the call that makes it, and each step looks before it makes: a run that was
// interrupted is continued by the next one, and a run with nothing to do changes nothing.
package infra

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"

	"hcp.internal/platform/internal/aws/tags"
)

// NoPrefix as base domain prefix means that the cluster's names are directly below the base domain.
const NoPrefix = "none"

// Options say what to make.
type Options struct {
	// InfraID marks everything that is made; required.
	InfraID string
	// Name is the hosted cluster's; it names private zones.
	Name string
	// BaseDomain is a public hosted zone of the account; required.
	BaseDomain string
	// BaseDomainPrefix is what stands before it; empty: Name.
	BaseDomainPrefix string
	Region           string
	// Zones are availability zones in the order of their subnets; empty: the first of the region. A later run must keep the order.
	Zones []string
	// VPCCIDR is the network's range, with a mask of 16.
	VPCCIDR        string
	AdditionalTags tags.Set

	// EnableProxy makes a machine that is a proxy, or with ProxyVPCEndpointServiceName an endpoint of one.
	EnableProxy                 bool
	ProxyVPCEndpointServiceName string
	// SingleNATGateway gives all zones the first one's gateway.
	SingleNATGateway bool
	// PublicOnly makes no private subnets and no gateways for them.
	PublicOnly bool
	// PrivateZonesInClusterAccount puts private zones there although the VPC is another account's.
	PrivateZonesInClusterAccount bool
}

// Output describes what there is, in the form that `create cluster aws --infra-json` reads.
type Output struct {
	Region              string `json:"region"`
	Zone                string `json:"zone"`
	InfraID             string `json:"infraID"`
	MachineCIDR         string `json:"machineCIDR"`
	VPCID               string `json:"vpcID"`
	Zones               []Zone `json:"zones"`
	Name                string `json:"Name"`
	BaseDomain          string `json:"baseDomain"`
	BaseDomainPrefix    string `json:"baseDomainPrefix"`
	PublicZoneID        string `json:"publicZoneID"`
	PrivateZoneID       string `json:"privateZoneID"`
	LocalZoneID         string `json:"localZoneID"`
	ProxyAddr           string `json:"proxyAddr"`
	SecureProxyAddr     string `json:"secureProxyAddr"`
	ProxyPrivateSSHKey  string `json:"proxyPrivateSSHKey"`
	PublicOnly          bool   `json:"publicOnly"`
	ProxyCA             string `json:"proxyCA"`
	VPCCreatorAccountID string `json:"vpcCreatorAccountID"`
	ClusterAccountID    string `json:"clusterAccountID"`
}

// Zone is an availability zone and the subnet of its machines.
type Zone struct {
	Name     string `json:"name"`
	SubnetID string `json:"subnetID"`
}

var (
	// infraID is what fits into names of buckets and roles, which are the narrowest that it becomes part of.
	infraIDForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,35}$`)
	domainForm  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$`)
	labelForm   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
)

// Validate tells what no request could succeed with. Flags are named as commands have them.
func (o Options) Validate() error {
	errs := []error{o.identity()}
	if _, err := planSubnets(o.VPCCIDR, o.Zones); err != nil {
		errs = append(errs, err)
	}
	if o.ProxyVPCEndpointServiceName != "" && !o.EnableProxy {
		errs = append(errs, errors.New("--proxy-vpc-endpoint-service-name: give --enable-proxy as well"))
	}
	if o.EnableProxy && o.PublicOnly {
		errs = append(errs, errors.New("--enable-proxy: has no use with --public-only, whose machines reach the internet themselves"))
	}
	return errors.Join(errs...)
}

// identity tells whether names can be made of the options.
func (o Options) identity() error {
	var errs []error
	if !infraIDForm.MatchString(o.InfraID) {
		errs = append(errs, fmt.Errorf("--infra-id %q: must be 1 to 36 lower-case letters, digits and dashes, and begin with no dash", o.InfraID))
	}
	if !domainForm.MatchString(o.BaseDomain) {
		errs = append(errs, fmt.Errorf("--base-domain %q: must be a domain such as example.com", o.BaseDomain))
	}
	if !labelForm.MatchString(o.Name) {
		errs = append(errs, fmt.Errorf("--name %q: must be lower-case letters, digits and dashes", o.Name))
	}
	if o.BaseDomainPrefix != "" && !labelForm.MatchString(o.BaseDomainPrefix) {
		errs = append(errs, fmt.Errorf("--base-domain-prefix %q: must be lower-case letters, digits, dashes and dots, or none", o.BaseDomainPrefix))
	}
	if o.Region == "" {
		errs = append(errs, errors.New("--region is required"))
	}
	return errors.Join(errs...)
}

// ClusterDomain is the domain below which the cluster's names are.
func ClusterDomain(name, prefix, base string) string {
	switch prefix {
	case NoPrefix:
		return base
	case "":
		return name + "." + base
	}
	return prefix + "." + base
}

// localDomain is the domain of names within the VPC.
func localDomain(name string) string { return name + ".hypershift.local" }

// subnets are the ranges of a zone.
type subnets struct{ zone, private, public string }

// A VPC of 16 bits has sixteen subnets of 20 bits: the lower half is public, the upper private.
const (
	vpcBits    = 16
	subnetBits = 20
	maxZones   = 8
)

// planSubnets gives each zone its ranges, by its place in the list.
func planSubnets(cidr string, zones []string) ([]subnets, error) {
	vpc, err := netip.ParsePrefix(cidr)
	if err != nil || !vpc.Addr().Is4() || vpc.Bits() != vpcBits || vpc.Masked() != vpc {
		return nil, fmt.Errorf("--vpc-cidr %q: must be an IPv4 range with a mask of 16, such as 10.0.0.0/16", cidr)
	}
	if len(zones) > maxZones {
		return nil, fmt.Errorf("--zones: %d zones, but a VPC has room for the subnets of %d", len(zones), maxZones)
	}
	seen := map[string]bool{}
	var list []subnets
	for i, zone := range zones {
		if zone == "" || seen[zone] {
			return nil, fmt.Errorf("--zones: %q is empty or there twice", zone)
		}
		seen[zone] = true
		list = append(list, subnets{zone: zone, public: subnet(vpc, i), private: subnet(vpc, maxZones+i)})
	}
	return list, nil
}

func subnet(vpc netip.Prefix, index int) string {
	addr := vpc.Addr().As4()
	addr[2] = byte(index << (24 - subnetBits))
	return netip.PrefixFrom(netip.AddrFrom4(addr), subnetBits).String()
}
