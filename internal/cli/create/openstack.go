package create

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
)

var openStackTexts = texts{
	short: "Create a hosted cluster on OpenStack (TechPreview)",
	long: `Create a hosted cluster on OpenStack. The APIs must be installed with --tech-preview-no-upgrade.

Network, subnet and router of the machines are made by the operator.`,
	example: `  hypershift create cluster openstack --name demo --base-domain example.com --pull-secret pull-secret.json \
    --openstack-credentials-file clouds.yaml --openstack-cloud openstack --openstack-node-flavor m1.xlarge --node-pool-replicas 2 \
    --release-image registry.example.com/ocp/release:4.22`,
	poolExample: `  hypershift create nodepool openstack --cluster-name demo --name demo-large --replicas 3 --openstack-node-flavor m1.2xlarge`,
}

// openStack is platform OpenStack.
type openStack struct {
	machines openStackMachines

	credentialsPath, cloud, caPath, externalNetwork, ingressIP string
	nameservers                                                []string

	credentials, ca []byte
}

func newOpenStack() *openStack { return &openStack{} }

func cloudCredentialsName(cluster string) string { return cluster + "-cloud-credentials" }

func (s *openStack) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.credentialsPath, "openstack-credentials-file", "", "File clouds.yaml with credentials (default: $OS_CLIENT_CONFIG_FILE, or clouds.yaml in this folder, ~/.config/openstack or /etc/openstack)")
	fs.StringVar(&s.cloud, "openstack-cloud", "openstack", "Entry of clouds.yaml to use")
	fs.StringVar(&s.caPath, "openstack-ca-cert-file", "", "File with PEM certificates of the cloud's authority (default: cacert of the entry in clouds.yaml)")
	fs.StringVar(&s.externalNetwork, "openstack-external-network-id", "", "ID of the network to the outside (default: the only one there is)")
	fs.StringVar(&s.ingressIP, "openstack-ingress-floating-ip", "", "Floating address of the default ingress (default: one is chosen)")
	fs.StringSliceVar(&s.nameservers, "openstack-dns-nameservers", nil, "Name servers of the machines' subnet")
	s.machines.addFlags(fs)
}

func (s *openStack) load(_ *pflag.FlagSet, o *Options) error {
	var errs []error
	if o.infraJSON != "" {
		errs = append(errs, errors.New("--infra-json: platform OpenStack is described by flags; leave it out"))
	}
	if s.credentialsPath == "" {
		s.credentialsPath = findClouds()
	}
	if s.credentialsPath == "" {
		errs = append(errs, errors.New("--openstack-credentials-file is required: name a clouds.yaml, there is none where OpenStack's tools look for it"))
	} else {
		errs = append(errs, s.readCredentials())
	}
	if s.caPath != "" {
		var err error
		if s.ca, err = connect.ReadFile(s.caPath); err == nil {
			err = connect.CheckCertificates(s.ca)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--openstack-ca-cert-file: %w", err))
		}
	}
	for flag, addresses := range map[string][]string{"ingress-floating-ip": {s.ingressIP}, "dns-nameservers": s.nameservers} {
		for _, address := range addresses {
			if _, err := netip.ParseAddr(address); address != "" && err != nil {
				errs = append(errs, fmt.Errorf("--openstack-%s %q: must be an address", flag, address))
			}
		}
	}
	if o.NodePool.Replicas >= 0 {
		errs = append(errs, s.machines.validate())
	}
	return errors.Join(errs...)
}

// findClouds is the clouds.yaml that OpenStack's own tools would take; empty when there is none.
func findClouds() string {
	if path := os.Getenv("OS_CLIENT_CONFIG_FILE"); path != "" {
		return path
	}
	places := []string{".", "/etc/openstack"}
	if home, err := os.UserConfigDir(); err == nil {
		places = slices.Insert(places, 1, filepath.Join(home, "openstack"))
	}
	for _, place := range places {
		path := filepath.Join(place, "clouds.yaml")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

func (s *openStack) readCredentials() error {
	raw, err := connect.ReadFile(s.credentialsPath)
	if err != nil {
		return fmt.Errorf("--openstack-credentials-file: %w", err)
	}
	var content struct {
		Clouds map[string]struct {
			CACert string `json:"cacert"`
		} `json:"clouds"`
	}
	// The parser's error may quote the content, and the content holds a password.
	if yaml.Unmarshal(raw, &content) != nil || len(content.Clouds) == 0 {
		return fmt.Errorf("--openstack-credentials-file %s: must be a clouds.yaml", s.credentialsPath)
	}
	entry, ok := content.Clouds[s.cloud]
	if !ok {
		return fmt.Errorf("--openstack-cloud %s: %s has no such entry below clouds", s.cloud, s.credentialsPath)
	}
	if s.caPath == "" {
		s.caPath = entry.CACert
	}
	s.credentials = raw
	return nil
}

func (s *openStack) cluster(o Options, _ Generated, hc *hyperv1.HostedCluster) {
	spec := &hyperv1.OpenStackPlatformSpec{
		IdentityRef:       hyperv1.OpenStackIdentityReference{Name: cloudCredentialsName(o.Name), CloudName: s.cloud},
		IngressFloatingIP: s.ingressIP,
	}
	if s.externalNetwork != "" {
		spec.ExternalNetwork = &hyperv1.NetworkParam{ID: ptr.To(hyperv1.OpenStackID(s.externalNetwork))}
	}
	if len(s.nameservers) > 0 {
		spec.ManagedSubnets = []hyperv1.SubnetSpec{{DNSNameservers: s.nameservers}}
	}
	hc.Spec.Platform.OpenStack = spec
}

func (s *openStack) objects(o Options, g Generated) []client.Object {
	secret := &corev1.Secret{
		ObjectMeta: secretMeta(o, g, cloudCredentialsName(o.Name)),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{"clouds.yaml": s.credentials},
	}
	if len(s.ca) > 0 {
		secret.Data["cacert"] = s.ca
	}
	return []client.Object{secret}
}

func (s *openStack) pools(_ Options, _ Generated, shared *hyperv1.NodePool) []*hyperv1.NodePool {
	s.machines.fill(shared)
	return []*hyperv1.NodePool{shared}
}

// openStackMachines are machines of OpenStack.
type openStackMachines struct {
	selfContained

	flavor, image, zone string
	ports               []string
	parsed              []hyperv1.PortSpec
}

func (m *openStackMachines) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&m.flavor, "openstack-node-flavor", "", "Flavor of workers (required with workers)")
	fs.StringVar(&m.image, "openstack-node-image-name", "", "Boot image of workers (default: that of the release)")
	fs.StringVar(&m.zone, "openstack-node-availability-zone", "", "Availability zone of workers (default: OpenStack chooses)")
	fs.StringArrayVar(&m.ports, "openstack-node-additional-port", nil,
		"Network interface besides the cluster's, as network-id:…[,vnic-type:…][,disable-port-security:true][,address-pairs:a-b] (repeatable)")
}

func (m *openStackMachines) load(*pflag.FlagSet, *NodePoolOptions) error { return m.validate() }

func (m *openStackMachines) validate() error {
	var errs []error
	if m.flavor == "" {
		errs = append(errs, errors.New("--openstack-node-flavor is required"))
	}
	m.parsed = nil
	for _, text := range m.ports {
		port, err := parsePort(text)
		errs = append(errs, err)
		m.parsed = append(m.parsed, port)
	}
	return errors.Join(errs...)
}

func parsePort(text string) (hyperv1.PortSpec, error) {
	var port hyperv1.PortSpec
	for option := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(option, ":")
		switch key {
		case "network-id":
			port.Network = &hyperv1.NetworkParam{ID: ptr.To(hyperv1.OpenStackID(value))}
		case "vnic-type":
			port.VNICType = value
		case "disable-port-security":
			if value == "true" {
				port.PortSecurityPolicy = "Disabled"
			}
		case "address-pairs":
			for address := range strings.SplitSeq(value, "-") {
				port.AllowedAddressPairs = append(port.AllowedAddressPairs, hyperv1.AddressPair{IPAddress: address})
			}
		default:
			return port, fmt.Errorf("--openstack-node-additional-port %q: unknown part %q; use network-id, vnic-type, disable-port-security and address-pairs", text, key)
		}
	}
	if port.Network == nil {
		return port, fmt.Errorf("--openstack-node-additional-port %q: needs network-id", text)
	}
	return port, nil
}

func (m *openStackMachines) fill(np *hyperv1.NodePool) {
	np.Spec.Platform.OpenStack = &hyperv1.OpenstackNodePoolPlatform{
		Flavor: m.flavor, ImageName: m.image, AvailabilityZone: m.zone, AdditionalPorts: m.parsed,
	}
}
