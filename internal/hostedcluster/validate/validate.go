package validate

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/hostedcluster/sources"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/hostnames"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/platform"
)

// Input is everything that validation looks at.
type Input struct {
	HC *hyperv1.HostedCluster
	// Namespace is the one that the control plane is in, or would go into; nil: there is none.
	Namespace *corev1.Namespace
	// Plane is the control plane as it is; nil: there is none.
	Plane *hyperv1.HostedControlPlane
	// Started: something of the control plane has been made, or was there once.
	Started bool
	// Routes: the management cluster serves route.openshift.io/v1.
	Routes bool
	// Payload: the release is one of OpenShift.
	Payload bool
	// TakenNames are host names that others have.
	TakenNames []hostnames.Conflict
	// Sources is every object that the spec mentions.
	Sources sources.Set
}

// validator finds one kind of mistake. Each message names the field, says what is wrong, and what to do.
type validator func(in *Input) []string

// validators are the semantic checks that the API server can't make. All run, so that a user sees every mistake at once.
var validators = []validator{
	namespaceIsOurs,
	namespaceNameFits,
	routesAreServed,
	servicesAreUsable,
	fieldsAreNotRefused,
	hostnamesAreUnique,
	hostnamesAreFree,
	labelsAreValid,
	referencesAreUsable,
	authenticationIsValid,
	signingKeyHasIssuer,
	namedCertificatesDoNotCollide,
	networksMakeSense,
	nodePortFits,
	etcdShardsWork,
	encryptionPluginIsUsable,
	platformIsUsable,
}

// Mistakes are those in the HostedCluster, in the order of the checks.
func Mistakes(in Input) []string {
	var mistakes []string
	for _, v := range validators {
		mistakes = append(mistakes, v(&in)...)
	}
	return mistakes
}

// namespaceIsOurs refuses a namespace that something else made: it may hold other things, and two names may lead to the same namespace.
func namespaceIsOurs(in *Input) []string {
	if in.Namespace == nil {
		return nil
	}
	owner, ok := in.Namespace.Annotations[hyperv1.HostedClusterAnnotation]
	if owner == names.BackReference(in.HC) {
		return nil
	}
	whose := "was not made for a hosted cluster"
	if ok {
		whose = fmt.Sprintf("belongs to HostedCluster %s", owner)
	}
	return []string{fmt.Sprintf("metadata.name: the control plane would go into namespace %s, which exists and %s: choose another name for the HostedCluster, or remove that namespace",
		in.Namespace.Name, whose)}
}

// maxNamespaceName is how many characters a namespace may have.
const maxNamespaceName = 63

func namespaceNameFits(in *Input) []string {
	ns := names.NamespaceOf(in.HC)
	if len(ns) > maxNamespaceName {
		return []string{fmt.Sprintf("metadata.name: the control plane's namespace %s would have %d characters, at most %d are allowed: shorten the name of the HostedCluster or of its namespace",
			ns, len(ns), maxNamespaceName)}
	}
	return nil
}

// platformIsUsable: a platform may know of mistakes that the schema doesn't, and of changes that can't be carried out.
func platformIsUsable(in *Input) []string {
	p, err := platform.For(in.HC.Spec.Platform.Type)
	if err != nil {
		return nil // a condition of its own says so
	}
	var mistakes []string
	if v, ok := p.(platform.Validator); ok {
		mistakes = v.Mistakes(in.HC)
	}
	if v, ok := p.(platform.ChangeValidator); ok && in.Plane != nil {
		mistakes = append(mistakes, v.ForbiddenChanges(in.HC, in.Plane)...)
	}
	return mistakes
}

// etcdShardsWork: kube-apiserver says nothing of a wish that it doesn't heed, and shards can't change later.
func etcdShardsWork(in *Input) []string { return shards.Mistakes(in.HC.Spec.Etcd) }

func routesAreServed(in *Input) []string {
	if in.Routes {
		return nil
	}
	var mistakes []string
	for i, s := range in.HC.Spec.Services {
		if s.ServicePublishingStrategy.Type != hyperv1.Route {
			continue
		}
		// An OpenShift payload brings a router, which serves its names on any management cluster.
		switch {
		case !in.Payload:
			mistakes = append(mistakes, fmt.Sprintf("spec.services[%d] (%s): type Route needs a management cluster with route.openshift.io/v1: use LoadBalancer or NodePort", i, s.Service))
		case hostname(s.ServicePublishingStrategy) == "":
			mistakes = append(mistakes, fmt.Sprintf("spec.services[%d] (%s): the management cluster does not serve route.openshift.io/v1, so nobody chooses a name for type Route: set route.hostname, or use NodePort", i, s.Service))
		case !in.routedAPI():
			mistakes = append(mistakes, fmt.Sprintf("spec.services[%d] (%s): the management cluster does not serve route.openshift.io/v1, and the control plane has a router of its own "+
				"only while APIServer is of type Route with route.hostname: publish APIServer so, or use NodePort", i, s.Service))
		}
	}
	return mistakes
}

// routedAPI says whether the API server is published by a Route that has a name.
func (in *Input) routedAPI() bool {
	return slices.ContainsFunc(in.HC.Spec.Services, func(s hyperv1.ServicePublishingStrategyMapping) bool {
		return s.Service == hyperv1.APIServer && s.ServicePublishingStrategy.Type == hyperv1.Route && hostname(s.ServicePublishingStrategy) != ""
	})
}

// servicesAreUsable: the API server has to be published, and a service in only one way.
func servicesAreUsable(in *Input) []string {
	var mistakes []string
	seen := map[hyperv1.ServiceType]int{}
	for i, s := range in.HC.Spec.Services {
		first, again := seen[s.Service]
		if !again {
			seen[s.Service] = i
		} else if in.HC.Spec.Services[first].ServicePublishingStrategy.Type != s.ServicePublishingStrategy.Type {
			mistakes = append(mistakes, fmt.Sprintf("spec.services[%d]: %s is published in another way by spec.services[%d]: keep one of them", i, s.Service, first))
		}
	}
	i, ok := seen[hyperv1.APIServer]
	if !ok {
		return append(mistakes, "spec.services: there is no entry for APIServer: say how the API server is published")
	}
	switch t := in.HC.Spec.Services[i].ServicePublishingStrategy.Type; t {
	case hyperv1.LoadBalancer, hyperv1.NodePort:
	case hyperv1.Route:
		if r := in.HC.Spec.Services[i].ServicePublishingStrategy.Route; r == nil || r.Hostname == "" {
			mistakes = append(mistakes, fmt.Sprintf("spec.services[%d] (APIServer): type Route needs route.hostname: set it", i))
		}
	default:
		mistakes = append(mistakes, fmt.Sprintf("spec.services[%d] (APIServer): type %s can't publish an API server: use LoadBalancer or NodePort", i, t))
	}
	return mistakes
}

func hostnamesAreUnique(in *Input) []string {
	var mistakes []string
	seen := map[string]int{}
	for i, s := range in.HC.Spec.Services {
		host := hostname(s.ServicePublishingStrategy)
		if host == "" {
			continue
		}
		if first, taken := seen[host]; taken {
			mistakes = append(mistakes, fmt.Sprintf("spec.services[%d] (%s): hostname %s is also used by spec.services[%d]: give every service its own hostname", i, s.Service, host, first))
			continue
		}
		seen[host] = i
	}
	return mistakes
}

// hostnamesAreFree: whoever came first keeps a name. Records in DNS, and what leads by names, know only one control plane for each.
func hostnamesAreFree(in *Input) (mistakes []string) {
	for _, c := range in.TakenNames {
		mistakes = append(mistakes, c.String())
	}
	return mistakes
}

func hostname(s hyperv1.ServicePublishingStrategy) string {
	switch {
	case s.Route != nil:
		return strings.ToLower(string(s.Route.Hostname))
	case s.LoadBalancer != nil:
		return strings.ToLower(string(s.LoadBalancer.Hostname))
	}
	return ""
}

// referencesAreUsable checks the objects whose content decides whether a control plane can start with this spec at all. The pull secret is
// not among them: it has a condition of its own.
func referencesAreUsable(in *Input) []string {
	var mistakes []string
	for _, ref := range sources.References(&in.HC.Spec) {
		if ref.Taken(&in.HC.Spec) {
			mistakes = append(mistakes, fmt.Sprintf("%s: the name %s is taken by an object of the control plane: give the %s another name", ref.Field, ref.Name, ref.Kind))
		}
		if ref.Purpose != sources.SigningKey && ref.Purpose != sources.TrustBundle {
			continue
		}
		if err := ref.Check(in.HC.Namespace, in.Sources); err != nil {
			mistakes = append(mistakes, err.Error())
		}
	}
	return mistakes
}

func signingKeyHasIssuer(in *Input) []string {
	if in.HC.Spec.ServiceAccountSigningKey != nil && in.HC.Spec.IssuerURL == "" {
		return []string{"spec.serviceAccountSigningKey: it needs spec.issuerURL: set the issuer whose keys these are"}
	}
	return nil
}

// namedCertificatesDoNotCollide: a user's certificate for a name by which the control plane itself calls the API server would break it.
func namedCertificatesDoNotCollide(in *Input) []string {
	config := in.HC.Spec.Configuration
	if _, skip := in.HC.Annotations[hyperv1.SkipKASConflictSANValidation]; skip || config == nil || config.APIServer == nil {
		return nil
	}
	taken := takenServerNames(in.HC)
	var mistakes []string
	for i, named := range config.APIServer.ServingCerts.NamedCertificates {
		names := append(slices.Clone(named.Names), certificateNames(in.Sources.Secret(named.ServingCertificate.Name).Data["tls.crt"])...)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if what, ok := taken[strings.ToLower(name)]; ok {
				mistakes = append(mistakes, fmt.Sprintf("spec.configuration.apiServer.servingCerts.namedCertificates[%d]: the certificate is for %s, %s: use a certificate without that name", i, name, what))
			}
		}
	}
	return mistakes
}

// takenServerNames are the names that the control plane's own certificates serve, and what they are.
func takenServerNames(hc *hyperv1.HostedCluster) map[string]string {
	taken := map[string]string{}
	ns := names.NamespaceOf(hc)
	for _, name := range []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		"openshift", "openshift.default", "openshift.default.svc", "openshift.default.svc.cluster.local",
		"kube-apiserver", "kube-apiserver." + ns, "kube-apiserver." + ns + ".svc", "kube-apiserver." + ns + ".svc.cluster.local",
		"api." + hc.Name + ".hypershift.local",
	} {
		taken[name] = "by which the control plane calls the API server"
	}
	for _, s := range hc.Spec.Services {
		if host := hostname(s.ServicePublishingStrategy); s.Service == hyperv1.APIServer && host != "" {
			taken[host] = "under which spec.services publishes the API server"
		}
	}
	return taken
}

// certificateNames are the DNS names and addresses of the first certificate; none when it does not parse, which kube-apiserver reports.
func certificateNames(pemData []byte) []string {
	block, _ := pem.Decode(pemData)
	if block == nil {
		return nil
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// block is a network of the spec, with the field that says so.
type block struct {
	field  string
	prefix netip.Prefix
}

// networks collects the address ranges of the spec; mistakes are those that don't parse.
func networks(n *hyperv1.ClusterNetworking) (blocks []block, mistakes []string) {
	add := func(field string, cidr hyperv1.CIDRBlock) {
		prefix, err := netip.ParsePrefix(string(cidr))
		if err != nil {
			mistakes = append(mistakes, fmt.Sprintf("%s: %q is not a network: write it as address/length", field, cidr))
			return
		}
		blocks = append(blocks, block{field, prefix.Masked()})
	}
	for i, e := range n.MachineNetwork {
		add(fmt.Sprintf("spec.networking.machineNetwork[%d]", i), e.CIDR)
	}
	for i, e := range n.ServiceNetwork {
		add(fmt.Sprintf("spec.networking.serviceNetwork[%d]", i), e.CIDR)
	}
	for i, e := range n.ClusterNetwork {
		add(fmt.Sprintf("spec.networking.clusterNetwork[%d]", i), e.CIDR)
	}
	return blocks, mistakes
}

// Default addresses at which every node reaches the API server.
const (
	defaultAdvertiseAddress   = "172.20.0.1"
	defaultAdvertiseAddressV6 = "fd00::1"
)

func networksMakeSense(in *Input) []string {
	n := &in.HC.Spec.Networking
	blocks, mistakes := networks(n)
	for i, a := range blocks {
		for _, b := range blocks[:i] {
			if a.prefix.Overlaps(b.prefix) {
				mistakes = append(mistakes, fmt.Sprintf("%s %s overlaps %s %s: choose ranges that share no address", a.field, a.prefix, b.field, b.prefix))
			}
		}
	}
	if len(mistakes) > 0 {
		return mistakes // the checks below would only repeat it
	}
	address, explicit, problem := advertiseAddress(n, blocks)
	if problem != "" {
		return []string{problem}
	}
	mistakes = append(mistakes, familiesAgree(blocks, address, explicit)...)
	if explicit {
		mistakes = append(mistakes, advertisable(address, in.HC.Spec.Services)...)
	}
	for _, b := range blocks {
		if b.prefix.Contains(address) {
			mistakes = append(mistakes, fmt.Sprintf("spec.networking.apiServer.advertiseAddress %s lies inside %s %s: choose an address outside all networks of the cluster", address, b.field, b.prefix))
		}
	}
	return mistakes
}

func advertiseAddress(n *hyperv1.ClusterNetworking, blocks []block) (address netip.Addr, explicit bool, problem string) {
	text := defaultAdvertiseAddress
	for _, b := range blocks {
		if strings.HasPrefix(b.field, "spec.networking.serviceNetwork[0]") && b.prefix.Addr().Is6() {
			text = defaultAdvertiseAddressV6
		}
	}
	if n.APIServer != nil && n.APIServer.AdvertiseAddress != nil && *n.APIServer.AdvertiseAddress != "" {
		text, explicit = *n.APIServer.AdvertiseAddress, true
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return address, explicit, fmt.Sprintf("spec.networking.apiServer.advertiseAddress: %q is not an IP address: write one, or leave the field out", text)
	}
	return address.Unmap(), explicit, ""
}

// advertisable finds what is wrong with an address that every node is to own: the API server takes no other kinds in Endpoints, and a node
// that owns the address of a published service can't reach that any more.
func advertisable(address netip.Addr, services []hyperv1.ServicePublishingStrategyMapping) []string {
	const field = "spec.networking.apiServer.advertiseAddress"
	if address.IsLoopback() || address.IsUnspecified() || address.IsLinkLocalUnicast() || address.IsMulticast() || address.Zone() != "" {
		return []string{fmt.Sprintf("%s %s can't be the endpoint of a Service: choose a private address that nothing else uses, such as %s, or leave the field out", field, address, defaultAdvertiseAddress)}
	}
	var mistakes []string
	for i, s := range services {
		p := s.ServicePublishingStrategy.NodePort
		if p == nil {
			continue
		}
		published, err := netip.ParseAddr(p.Address)
		if err != nil || published.Unmap() != address {
			continue
		}
		if s.Service == hyperv1.APIServer {
			return nil // then it is the API's own, and nodes leave it alone
		}
		mistakes = append(mistakes, fmt.Sprintf("%s %s is also the address of spec.services[%d] (%s): nodes own the advertised address and could not reach the service; choose another, or leave the field out", field, address, i, s.Service))
	}
	return mistakes
}

// familiesAgree compares the first network of each kind, and the advertise address, by address family.
func familiesAgree(blocks []block, address netip.Addr, explicit bool) []string {
	var primary []block
	for _, b := range blocks {
		if strings.HasSuffix(b.field, "[0]") {
			primary = append(primary, b)
		}
	}
	var mistakes []string
	for _, b := range primary {
		if b.prefix.Addr().Is4() != primary[0].prefix.Addr().Is4() {
			mistakes = append(mistakes, fmt.Sprintf("%s %s and %s %s are of different IP families: use the same family for the first network of each kind", b.field, b.prefix, primary[0].field, primary[0].prefix))
		}
	}
	if explicit && len(primary) > 0 && address.Is4() != primary[0].prefix.Addr().Is4() {
		mistakes = append(mistakes, fmt.Sprintf("spec.networking.apiServer.advertiseAddress %s and %s %s are of different IP families: use the same", address, primary[0].field, primary[0].prefix))
	}
	return mistakes
}

// The default range of node ports, which the management cluster's API server assigns from.
const (
	firstNodePort = 30000
	lastNodePort  = 32767
)

// nodePorts is the range that the user says the management cluster has, or else the default one.
func nodePorts(c *hyperv1.ClusterConfiguration) (first, last int32) {
	first, last = firstNodePort, lastNodePort
	if c != nil && c.Network != nil && c.Network.ServiceNodePortRange != "" {
		if _, err := fmt.Sscanf(c.Network.ServiceNodePortRange, "%d-%d", &first, &last); err != nil {
			return firstNodePort, lastNodePort
		}
	}
	return first, last
}

func nodePortFits(in *Input) []string {
	var mistakes []string
	blocks, _ := networks(&in.HC.Spec.Networking)
	first, last := nodePorts(in.HC.Spec.Configuration)
	for i, s := range in.HC.Spec.Services {
		np := s.ServicePublishingStrategy.NodePort
		if s.ServicePublishingStrategy.Type != hyperv1.NodePort || np == nil {
			continue
		}
		if address, err := netip.ParseAddr(np.Address); err == nil {
			for _, b := range blocks {
				if strings.HasPrefix(b.field, "spec.networking.serviceNetwork") && b.prefix.Contains(address) {
					mistakes = append(mistakes, fmt.Sprintf("spec.services[%d] (%s): nodePort.address %s lies inside %s %s: use the address of a node of the management cluster", i, s.Service, address, b.field, b.prefix))
				}
			}
		}
		if s.Service == hyperv1.APIServer && np.Port != 0 && (np.Port < first || np.Port > last) {
			mistakes = append(mistakes, fmt.Sprintf("spec.services[%d] (APIServer): nodePort.port %d is outside %d-%d: use a port of that range, or 0 to have one chosen", i, np.Port, first, last))
		}
	}
	return mistakes
}

// encryptionPluginIsUsable: it is heeded by releases of Kubernetes, beside keys of type aescbc, and another value would look like encryption in another way.
func encryptionPluginIsUsable(in *Input) []string {
	value, asked := in.HC.Annotations[encryption.PluginAnnotation]
	if !asked {
		return nil
	}
	e := in.HC.Spec.SecretEncryption
	var wrong string
	switch {
	case value != encryption.PluginLocal:
		wrong = fmt.Sprintf("%q is no plugin: write %q, or remove the annotation", value, encryption.PluginLocal)
	case in.Payload:
		wrong = "OpenShift payloads have plugins of clouds alone: remove the annotation, and choose type kms with one of its providers, or type aescbc without a plugin"
	case e == nil || e.Type != hyperv1.AESCBC:
		wrong = "the plugin holds the keys of spec.secretEncryption with type aescbc, and there are none: name them, or remove the annotation"
	default:
		return nil
	}
	return []string{fmt.Sprintf("metadata.annotations[%s]: %s", encryption.PluginAnnotation, wrong)}
}
