package pki

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/contract/names"
)

// Defaults and bounds of the life of leaves.
const (
	// DefaultValidity of a leaf.
	DefaultValidity = 365 * 24 * time.Hour
	// MinValidity keeps a mistyped annotation from turning the control plane into a renewal loop.
	MinValidity = 10 * time.Minute
	// bootstrapValidity bounds the life of the credential that machines join with: all machines have the same, and it stays on their disks.
	// It is long enough for a control plane that is paused over a long weekend, and what is left of it when it is renewed, two days, for any
	// machine that has just got it.
	bootstrapValidity = 7 * 24 * time.Hour
	// caValidity of authorities.
	caValidity = 10 * 365 * 24 * time.Hour
	// renewBefore is how long a leaf of ordinary validity still lasts when it is renewed.
	renewBefore = 30 * 24 * time.Hour
	// maxRenewShare caps how much of its life a leaf may have left when it is renewed. Without it a validity below renewBefore would renew on
	// every pass.
	maxRenewShare = 0.8
	// shortLifeShare of its validity is what a leaf has left when it is renewed, if that is less than renewBefore.
	shortLifeShare = 1.0 / 3
	// maxBackdate is how far before now a certificate begins, so that a node whose clock is behind accepts it.
	maxBackdate = 5 * time.Minute
)

// Spec is everything that a control plane's keys and certificates depend on.
type Spec struct {
	Namespace string
	// Name of the HostedControlPlane.
	Name    string
	InfraID string
	// Owner is set on every object, so that deleting the HostedControlPlane deletes them.
	Owner metav1.OwnerReference

	// APIHost and APIPort are where users and nodes reach the API. While the host is empty, what depends on it is left out.
	APIHost string
	APIPort int32
	// CustomAPIHost is spec.kubeAPIServerDNSName: one more name in the serving certificate, and a kubeconfig of its own. Optional.
	CustomAPIHost string
	// AdvertiseAddress is the IP of Service default/kubernetes' endpoint in the hosted cluster.
	AdvertiseAddress string
	// InternalAPIPort of Service kube-apiserver, PodAPIPort of its pods.
	InternalAPIPort int32
	PodAPIPort      int32
	// KonnectivityHost is where agents reach the tunnel server. Optional.
	KonnectivityHost string
	// IgnitionServer is true when there is one, and IgnitionHost is where machines reach it. The host is optional.
	IgnitionServer bool
	IgnitionHost   string
	// ServiceCIDRs of the hosted cluster; the first address of each is the kubernetes Service.
	ServiceCIDRs []string

	// ClientCA names a ConfigMap with the user's authorities of client certificates, under UserBundleKey. Optional.
	ClientCA string

	// AdminKubeconfigName and AdminKubeconfigKey override where the admin kubeconfig goes. Optional.
	AdminKubeconfigName string
	AdminKubeconfigKey  string
	// NamedCertificates are Secrets whose certificates join the trust bundle of the admin kubeconfig.
	NamedCertificates []string

	// Payload is what an OpenShift payload needs besides; nil for a release of Kubernetes.
	Payload *Payload

	// Undecided is true while the flavour of the release is not known: what depends on it is left as it is.
	Undecided bool

	// UnmanagedEtcd is true when etcd runs elsewhere: its client certificate was copied here and is not issued.
	UnmanagedEtcd bool
	// EtcdShards are the names of the shards of etcd that run here, sorted. Each is an etcd with certificates of its own, from the same authority.
	EtcdShards []string
	// UserServiceAccountKey is true when the user provides the service account signing key: it is waited for, not generated.
	UserServiceAccountKey bool

	// Validity of leaves; zero means DefaultValidity.
	Validity time.Duration
	// RenewShare is the share of its life that a leaf has left when it is renewed; zero means the default rule.
	RenewShare float64
	// KeyKind of everything but the service account key; empty means ECDSA.
	KeyKind KeyKind
	// TrustRolledOut is true while every component runs with what its files say now. Authorities wait for it before their successors sign.
	TrustRolledOut bool
	// NodesTrust is the hash (package contract/nodetrust) of what every node of the hosted cluster trusts by now; empty: nobody knows.
	NodesTrust string
	// LeaveNodes gives nodes up that don't follow; see LeaveNodesAnnotation. Zero: all are waited for. It must not be later than now.
	LeaveNodes time.Time
	// RotateBefore replaces authorities that were made before it; see RotateBeforeAnnotation. Zero: none. It must not be later than now.
	RotateBefore time.Time
	// RevokeBefore ends trust in previous authorities that were made before it; see RevokeBeforeAnnotation. Zero: none.
	RevokeBefore time.Time
	// Disabled stops everything.
	Disabled bool
}

// keepsKubeconfigs says whether kubeconfigs are written here. Those of OpenShift payloads belong to the components that bring them.
func (s Spec) keepsKubeconfigs() bool { return s.Payload == nil && !s.Undecided }

func (s Spec) validity() time.Duration {
	if s.Validity <= 0 {
		return DefaultValidity
	}
	return max(s.Validity, MinValidity)
}

// of is the specification for one leaf, whose life may be bounded.
func (s Spec) of(l leaf) Spec {
	if l.life > 0 {
		s.Validity = min(s.validity(), l.life)
	}
	return s
}

// renewLeft is how long a leaf still lasts when it is renewed.
func (s Spec) renewLeft() time.Duration {
	v := s.validity()
	if s.RenewShare > 0 {
		return time.Duration(float64(v) * min(s.RenewShare, maxRenewShare))
	}
	return min(renewBefore, time.Duration(float64(v)*shortLifeShare))
}

func (s Spec) backdate() time.Duration { return min(maxBackdate, s.validity()/10) }

func (s Spec) keyKind() KeyKind {
	if s.KeyKind == "" {
		return ECDSA
	}
	return s.KeyKind
}

// serviceNames are the names of a Service in the control plane namespace, as pods of the management cluster use them.
func (s Spec) serviceNames(service string) []string {
	return []string{
		service,
		fmt.Sprintf("%s.%s.svc", service, s.Namespace),
		fmt.Sprintf("%s.%s.svc.cluster.local", service, s.Namespace),
	}
}

// qualifiedNames are those of serviceNames that hold the namespace.
func (s Spec) qualifiedNames(service string) []string { return s.serviceNames(service)[1:] }

// firstAddress is the first usable address of a CIDR, which Kubernetes gives to Service default/kubernetes.
func firstAddress(cidr string) (string, error) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return "", fmt.Errorf("parsing service CIDR %q: %w", cidr, err)
	}
	first := prefix.Masked().Addr().Next()
	if !prefix.Contains(first) {
		return "", fmt.Errorf("service CIDR %q has no usable address", cidr)
	}
	return first.String(), nil
}

// authority is a certificate authority that a control plane has.
type authority struct {
	secret string
	name   string // common name
	unit   string
}

// authorities in the order of the specification.
func (s Spec) authorities() []authority {
	all := []authority{
		{RootCA, "root-ca", authorityOrgUnit},
		{ClusterSigner, "kube-csr-signer", authorityOrgUnit},
		{AggregatorSigner, "aggregator-signer", authorityOrgUnit},
		{ControlPlaneSigner, "kube-control-plane-signer", authorityOrgUnit},
		{KubeletSigner, "kube-apiserver-to-kubelet-signer", authorityOrgUnit},
		{SystemAdminSigner, "admin-kubeconfig-signer", authorityOrgUnit},
		{HCCOSigner, "hcco-signer", authorityOrgUnit},
		{KASBootstrapSigner, "kas-bootstrap-container-signer", authorityOrgUnit},
		{KonnectivitySigner, "konnectivity-signer", konnectivityOrgUnit},
	}
	if s.IgnitionServer {
		// An authority of its own, because machines get it before they may know anything else of the cluster.
		all = append(all, authority{IgnitionCA, "ignition-root-ca", authorityOrgUnit})
	}
	if !s.UnmanagedEtcd {
		all = append(all,
			authority{EtcdSigner, "etcd-signer", authorityOrgUnit},
			authority{EtcdMetricsSigner, "etcd-metrics-signer", authorityOrgUnit})
	}
	return append(all, s.payloadAuthorities()...)
}

var (
	serverAuth = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	clientAuth = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	bothAuth   = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
)

// leaf is a certificate that an authority issues.
type leaf struct {
	secret string
	signer string // Secret of the authority
	name   string // common name
	orgs   []string
	usages []x509.ExtKeyUsage
	dns    []string
	ips    []string
	// certKey and keyKey are the Secret's keys when they are not the usual ones.
	certKey, keyKey string
	// life is the longest that it may be valid; zero leaves it to the specification.
	life time.Duration
}

func (l leaf) certEntry() string {
	if l.certKey != "" {
		return l.certKey
	}
	return TLSCertKey
}

func (l leaf) keyEntry() string {
	if l.keyKey != "" {
		return l.keyKey
	}
	return TLSKeyKey
}

// withHosts adds names or addresses, whichever each host is, without duplicates and in a stable order.
func (l leaf) withHosts(hosts ...string) leaf {
	for _, host := range hosts {
		if host == "" {
			continue
		}
		if addr, err := netip.ParseAddr(host); err == nil {
			l.ips = append(l.ips, addr.String())
		} else {
			l.dns = append(l.dns, host)
		}
	}
	slices.Sort(l.dns)
	slices.Sort(l.ips)
	l.dns, l.ips = slices.Compact(l.dns), slices.Compact(l.ips)
	return l
}

// leaves that the control plane needs, as far as they can be issued with what is known now.
func (s Spec) leaves() ([]leaf, error) {
	kubernetes, openshift := []string{"kubernetes"}, []string{"openshift"}
	all := []leaf{
		leaf{secret: KASServerPrivate, signer: RootCA, name: "kubernetes-private", orgs: kubernetes, usages: serverAuth}.withHosts(s.serviceNames(names.KubeAPIServer)...),
		{secret: KASKubeletClient, signer: KubeletSigner, name: "system:kube-apiserver", orgs: kubernetes, usages: clientAuth},
		{secret: KASAggregatorClient, signer: AggregatorSigner, name: "system:openshift-aggregator", orgs: kubernetes, usages: clientAuth},
		{secret: SchedulerClient, signer: ControlPlaneSigner, name: "system:kube-scheduler", orgs: kubernetes, usages: clientAuth},
		{secret: KCMClient, signer: ControlPlaneSigner, name: "system:kube-controller-manager", orgs: kubernetes, usages: clientAuth},
		{secret: SystemAdminClient, signer: SystemAdminSigner, name: "system:admin", orgs: []string{"system:masters"}, usages: clientAuth},
		{secret: HCCOClient, signer: HCCOSigner, name: "system:hosted-cluster-config", orgs: []string{"kubernetes", "system:serviceaccounts:openshift"}, usages: clientAuth},
		{secret: KASBootstrapClient, signer: KASBootstrapSigner, name: "system:kas-bootstrap-container", orgs: kubernetes, usages: clientAuth},
		{secret: NodeBootstrapClient, signer: ClusterSigner, name: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
			orgs: []string{"system:serviceaccounts:openshift-machine-config-operator", "system:serviceaccounts"}, usages: clientAuth, life: bootstrapValidity},
		{secret: MetricsClient, signer: ClusterSigner, name: "system:serviceaccount:hypershift:prometheus", orgs: kubernetes, usages: clientAuth},
		leaf{secret: KCMServer, signer: RootCA, name: "kube-controller-manager", orgs: openshift, usages: bothAuth}.withHosts(append(s.serviceNames("kube-controller-manager"), "localhost")...),
		leaf{secret: SchedulerServer, signer: RootCA, name: "kube-scheduler", orgs: openshift, usages: bothAuth}.withHosts(append(s.serviceNames("kube-scheduler"), "localhost")...),
		leaf{secret: KonnectivityServer, signer: KonnectivitySigner, name: "konnectivity-server-local", orgs: kubernetes, usages: serverAuth}.
			withHosts(append(s.serviceNames(konnectivityInternal), "localhost", "127.0.0.1")...),
		leaf{secret: KonnectivityCluster, signer: KonnectivitySigner, name: "konnectivity-server", orgs: kubernetes, usages: serverAuth}.
			withHosts(append(s.serviceNames(konnectivityPublic), s.KonnectivityHost)...),
		{secret: KonnectivityClient, signer: KonnectivitySigner, name: "konnectivity-client", orgs: kubernetes, usages: clientAuth},
		{secret: KonnectivityAgent, signer: KonnectivitySigner, name: "konnectivity-agent", orgs: kubernetes, usages: clientAuth},
	}
	if s.IgnitionServer {
		all = append(all, leaf{secret: IgnitionServing, signer: IgnitionCA, name: names.IgnitionServer, orgs: openshift, usages: serverAuth}.
			withHosts(append(s.serviceNames(names.IgnitionServer), s.IgnitionHost)...))
	}
	if !s.UnmanagedEtcd {
		all = append(all, s.etcdLeaves()...)
	}
	all = append(all, s.payloadLeaves()...)
	if s.APIHost == "" {
		return all, nil
	}
	server, err := s.apiServerLeaf()
	if err != nil {
		return nil, err
	}
	return append(all, server), nil
}

func (s Spec) apiServerLeaf() (leaf, error) {
	hosts := []string{"localhost", "127.0.0.1", "::1", s.AdvertiseAddress, s.APIHost, s.CustomAPIHost, InternalAPIHost(s.Name)}
	for _, service := range []string{"kubernetes", "openshift"} {
		hosts = append(hosts, service, service+".default", service+".default.svc", service+".default.svc.cluster.local")
	}
	for _, cidr := range s.ServiceCIDRs {
		first, err := firstAddress(cidr)
		if err != nil {
			return leaf{}, err
		}
		hosts = append(hosts, first)
	}
	return leaf{secret: KASServer, signer: RootCA, name: "kubernetes", orgs: []string{"kubernetes"}, usages: serverAuth}.withHosts(hosts...), nil
}

func (s Spec) etcdLeaves() []leaf {
	kubernetes := []string{"kubernetes"}
	leaves := []leaf{
		{secret: EtcdClient, signer: EtcdSigner, name: "etcd-client", orgs: kubernetes, usages: clientAuth, certKey: "etcd-client.crt", keyKey: "etcd-client.key"},
		{secret: EtcdMetricsClient, signer: EtcdMetricsSigner, name: "etcd-metrics-client", orgs: kubernetes, usages: clientAuth},
	}
	leaves = append(leaves, s.memberLeaves(EtcdServer, EtcdPeer, etcdClientName, etcdDiscoveryName)...)
	for _, shard := range s.EtcdShards {
		leaves = append(leaves, s.memberLeaves(EtcdShardServer(shard), EtcdShardPeer(shard), etcdClientName+"-"+shard, etcdDiscoveryName+"-"+shard)...)
	}
	return leaves
}

// memberLeaves are the certificates of the members of one etcd, for the names of its two Services.
func (s Spec) memberLeaves(server, peer, client, discovery string) []leaf {
	kubernetes := []string{"kubernetes"}
	members := s.qualifiedNames("*." + discovery)
	return []leaf{
		leaf{secret: server, signer: EtcdSigner, name: "etcd-server", orgs: kubernetes, usages: bothAuth, certKey: "server.crt", keyKey: "server.key"}.
			withHosts(slices.Concat(members, s.qualifiedNames(client), []string{client, "localhost"})...),
		leaf{secret: peer, signer: EtcdSigner, name: discovery, orgs: kubernetes, usages: bothAuth, certKey: "peer.crt", keyKey: "peer.key"}.
			withHosts(append(members, "127.0.0.1", "::1")...),
	}
}
