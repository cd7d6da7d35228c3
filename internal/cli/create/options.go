package create

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
)

// DefaultNamespace is where hosted clusters live unless told otherwise.
const DefaultNamespace = connect.DefaultNamespace

// localRegistry is the registry of local mode, as its nodes reach it.
const localRegistry = "10.244.0.1:5000"

// exampleDomain is the base domain of clusters whose machines are in no cloud's zone, when nobody names one.
const exampleDomain = "example.com"

// machineNetwork is the network of machines on platforms that make one, when nobody names one.
const machineNetwork = "10.0.0.0/16"

// emptyPullSecret gives access to what needs no credentials, as the registry of local mode.
const emptyPullSecret = `{"auths":{}}`

// Options describes a hosted cluster. NewOptions has the defaults of a platform.
type Options struct {
	Connect  connect.Flags
	Platform hyperv1.PlatformType

	Name             string
	Namespace        string
	BaseDomain       string
	BaseDomainPrefix string // "none" means no prefix, empty means the name
	ReleaseImage     string
	PullSecret       []byte // content of a .dockerconfigjson
	TrustBundle      []byte // PEM certificates
	SSHPublicKey     []byte // one line of authorized_keys; nil: made when GenerateSSH
	GenerateSSH      bool
	InfraID          string // empty: made from the name
	Annotations      map[string]string
	Labels           map[string]string
	// ReleaseStream is asked for its newest release when ReleaseImage is empty.
	ReleaseStream string
	// ExternalDNSDomain is the DNS suffix of the published services' names, for which external-dns makes records.
	ExternalDNSDomain string
	IssuerURL         string // of service account tokens; empty: the operator's default
	SigningKey        []byte // PEM private key of service account tokens; nil: the operator makes one

	FeatureSet               configv1.FeatureSet
	EnabledCapabilities      []string
	DisabledCapabilities     []string
	OLMCatalogPlacement      hyperv1.OLMCatalogPlacement
	OLMDisableDefaultSources bool
	DisableMultiNetwork      bool
	OVNKubernetesMTU         int32 // bytes; 0: the network operator's choice
	VersionCheck             bool  // refuse to work with an operator of another version

	Availability      hyperv1.AvailabilityPolicy
	InfraAvailability hyperv1.AvailabilityPolicy
	EtcdStorageClass  string
	EtcdStorageSize   string
	FIPS              bool
	PausedUntil       string
	KASDNSName        string
	NodeSelector      map[string]string
	PodLabels         map[string]string
	Tolerations       []corev1.Toleration
	ContentSources    []hyperv1.ImageContentSource

	NetworkType       hyperv1.NetworkType
	ServiceCIDRs      []string
	ClusterCIDRs      []string
	MachineCIDRs      []string
	AllocateNodeCIDRs bool

	// APIServerAddress publishes by node port at this address. Exclusive with LoadBalancer.
	APIServerAddress string
	// LoadBalancer publishes the API by a Service of type LoadBalancer.
	LoadBalancer bool
	// NodePorts publishes by node port at the address of a node of the management cluster, when APIServerAddress is empty.
	NodePorts bool
	// Routes says that the management cluster serves OpenShift Routes. Cluster finds out.
	Routes bool

	// Private says that nodes reach the API by a private connection, so that it is published by a Route.
	Private bool
	// PrivateNodes says that nodes reach Konnectivity and Ignition by a private connection, so that those get no public names.
	PrivateNodes bool

	// NodePool describes the pools that the cluster starts with; none with a negative number of replicas.
	NodePool NodePoolOptions
	// ScalePools applies NodePool.Replicas to pools that exist, also when it is 0.
	ScalePools bool

	// cloud is what the platform adds; nil: nothing.
	cloud clusterPlatform
	// infraJSON is a file that describes infrastructure; platforms that know the form read it.
	infraJSON string
	// notes are for the person at the terminal.
	notes []string
	// existing is the HostedCluster that is created again; nil: it is new.
	existing *hyperv1.HostedCluster
	// keepsRelease says that nobody named a release, and ReleaseImage is that of existing.
	keepsRelease bool
	// keepsNetwork says that nobody chose a network, and that existing has another one than a new cluster would get.
	keepsNetwork bool
	// chosen are the names of the flags that were given. Without a command line, what differs from the defaults is chosen.
	chosen []string

	Wait    bool
	Timeout time.Duration
	Clock   clock.WithTicker // nil: the real one
}

// NewOptions returns the defaults of a platform.
func NewOptions(platform hyperv1.PlatformType) Options {
	// A copy: String remembers its result in the value, and the constant is shared.
	etcdSize := hyperv1.DefaultPersistentVolumeEtcdStorageSize.DeepCopy()
	o := Options{
		Platform:          platform,
		Namespace:         DefaultNamespace,
		Availability:      hyperv1.SingleReplica,
		InfraAvailability: hyperv1.SingleReplica,
		NetworkType:       hyperv1.OVNKubernetes,
		ServiceCIDRs:      []string{"172.31.0.0/16"},
		ClusterCIDRs:      []string{"10.132.0.0/14"},
		EtcdStorageSize:   etcdSize.String(),
		NodePool:          NewNodePoolOptions(platform),
		Timeout:           30 * time.Minute,
	}
	o.NodePool.Replicas = 0
	if platform == hyperv1.LocalPlatform {
		o.NodePool.Replicas = -1 // a control plane alone is what local clusters are mostly made for
	}
	switch platform {
	case hyperv1.AgentPlatform, hyperv1.NonePlatform:
		o.BaseDomain = exampleDomain
	case hyperv1.OpenStackPlatform, hyperv1.PowerVSPlatform:
		o.MachineCIDRs = []string{machineNetwork}
	}
	if make := platformOf(platform).cluster; make != nil {
		o.cloud = make()
		o.Routes = true // clouds are supported on management clusters of OpenShift, which have Routes
	}
	if o.cloud == nil {
		// The network that releases of Kubernetes have.
		o.NetworkType, o.AllocateNodeCIDRs = hyperv1.Other, true
	}
	if platform == hyperv1.LocalPlatform {
		o.LoadBalancer = true
		o.PullSecret = []byte(emptyPullSecret)
	}
	return o
}

// domain is what the API accepts as a DNS name.
var domain = regexp.MustCompile(`^(?:(?:[a-zA-Z0-9-]+\.)+[a-zA-Z]{2,}|[a-zA-Z0-9-]+)$`)

// Validate names each wrong flag and what it takes. The API server checks the rest.
func (o Options) Validate() error {
	errs := []error{
		label("--name", o.Name),
		label("--namespace", o.Namespace),
		domainName("--base-domain", o.BaseDomain),
		domainName("--base-domain-prefix", o.BaseDomainPrefix),
		domainName("--kas-dns-name", o.KASDNSName),
		domainName("--external-dns-domain", o.ExternalDNSDomain),
		availability("--control-plane-availability-policy", o.Availability),
		availability("--infra-availability-policy", o.InfraAvailability),
		cidrs("--service-cidr", o.ServiceCIDRs, 1),
		cidrs("--cluster-cidr", o.ClusterCIDRs, 1),
		cidrs("--machine-cidr", o.MachineCIDRs, 0),
		pausedUntil(o.PausedUntil),
		o.NodePool.validate(),
	}
	if len(o.PullSecret) == 0 {
		errs = append(errs, errors.New("--pull-secret is required: name a file with registry credentials (.dockerconfigjson)"))
	} else if err := connect.CheckPullSecret(o.PullSecret); err != nil {
		errs = append(errs, fmt.Errorf("--pull-secret: %w", err))
	}
	if size, err := resource.ParseQuantity(o.EtcdStorageSize); err != nil || size.Sign() <= 0 {
		errs = append(errs, fmt.Errorf("--etcd-storage-size %q: must be a size such as 8Gi", o.EtcdStorageSize))
	}
	if o.APIServerAddress != "" && o.LoadBalancer && o.Platform != hyperv1.LocalPlatform {
		errs = append(errs, errors.New("--external-api-server-address and --expose-through-load-balancer exclude each other: leave one out"))
	}
	if !o.networkOpen() {
		errs = append(errs, o.validateNetwork())
	}
	networks := []hyperv1.NetworkType{hyperv1.OVNKubernetes, hyperv1.OpenShiftSDN, hyperv1.Calico, hyperv1.Other}
	if !slices.Contains(networks, o.NetworkType) {
		errs = append(errs, fmt.Errorf("--network-type %q: must be one of %v", o.NetworkType, networks))
	}
	errs = append(errs, o.validatePublishing())
	errs = append(errs, o.validateOpenShift()...)
	// The control-plane namespace is made of both names.
	if n := len(o.Namespace) + 1 + len(o.Name); n > validation.DNS1123LabelMaxLength {
		errs = append(errs, fmt.Errorf("--name and --namespace have %d characters together, with a dash: at most %d make a namespace name", n, validation.DNS1123LabelMaxLength))
	}
	return errors.Join(errs...)
}

func label(flag, value string) error {
	if value == "" {
		return fmt.Errorf("%s is required", flag)
	}
	if problems := validation.IsDNS1123Label(value); len(problems) > 0 {
		return fmt.Errorf("%s %q: %s", flag, value, strings.Join(problems, "; "))
	}
	return nil
}

// domainName lets an empty value pass: no flag of that kind is required.
func domainName(flag, value string) error {
	if value == "" {
		return nil
	}
	if len(value) > 253 || !domain.MatchString(value) {
		return fmt.Errorf("%s %q: must be a domain such as example.com", flag, value)
	}
	return nil
}

func availability(flag string, value hyperv1.AvailabilityPolicy) error {
	if value == hyperv1.HighlyAvailable || value == hyperv1.SingleReplica {
		return nil
	}
	return fmt.Errorf("%s %q: must be %s or %s", flag, value, hyperv1.HighlyAvailable, hyperv1.SingleReplica)
}

// cidrs allows one network per address family.
func cidrs(flag string, values []string, least int) error {
	if len(values) < least || len(values) > 2 {
		return fmt.Errorf("%s: %d networks given, need %d to 2 (one per address family)", flag, len(values), least)
	}
	var parsed []netip.Prefix
	for _, value := range values {
		prefix, err := netip.ParsePrefix(value)
		if err != nil {
			return fmt.Errorf("%s %q: must be a CIDR such as 10.132.0.0/14", flag, value)
		}
		if prefix.Masked() != prefix {
			return fmt.Errorf("%s %q: has bits behind the prefix; write %s", flag, value, prefix.Masked())
		}
		parsed = append(parsed, prefix)
	}
	if len(parsed) == 2 && parsed[0].Addr().Is4() == parsed[1].Addr().Is4() {
		return fmt.Errorf("%s: two networks must be one of IPv4 and one of IPv6", flag)
	}
	return nil
}

func pausedUntil(value string) error {
	if value == "" || value == "true" || value == "false" {
		return nil
	}
	if _, err := time.Parse(time.RFC3339, value); err != nil {
		return fmt.Errorf("--pausedUntil %q: must be true, false or a time such as 2027-01-31T12:00:00Z", value)
	}
	return nil
}
