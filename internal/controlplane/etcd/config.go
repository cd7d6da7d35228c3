package etcd

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/settings"
)

const (
	configKey = "etcd.yaml"

	// quota is how large the database may become: what etcd's documentation gives as the upper end.
	quota = 8 << 30
	// snapshotCount is how many changes are kept in memory for members that lag behind.
	snapshotCount = 10000
)

// config is etcd's configuration file; its keys are those of etcd.
type config struct {
	Name                     string    `json:"name"`
	DataDir                  string    `json:"data-dir"`
	InitialCluster           string    `json:"initial-cluster"`
	InitialClusterState      string    `json:"initial-cluster-state"`
	InitialClusterToken      string    `json:"initial-cluster-token"`
	InitialAdvertisePeerURLs string    `json:"initial-advertise-peer-urls"`
	AdvertiseClientURLs      string    `json:"advertise-client-urls"`
	ListenPeerURLs           string    `json:"listen-peer-urls"`
	ListenClientURLs         string    `json:"listen-client-urls"`
	ListenMetricsURLs        string    `json:"listen-metrics-urls"`
	QuotaBackendBytes        int64     `json:"quota-backend-bytes"`
	SnapshotCount            uint64    `json:"snapshot-count"`
	ClientTransportSecurity  transport `json:"client-transport-security"`
	PeerTransportSecurity    transport `json:"peer-transport-security"`
	TLSMinVersion            string    `json:"tls-min-version"`
	CipherSuites             []string  `json:"cipher-suites,omitempty"`
}

type transport struct {
	CertFile       string `json:"cert-file"`
	KeyFile        string `json:"key-file"`
	ClientCertAuth bool   `json:"client-cert-auth"`
	TrustedCAFile  string `json:"trusted-ca-file"`
}

// anyMember stands for the name of whichever member reads the template.
const anyMember = "$(POD_NAME)"

// adaptConfig writes etcd's configuration. With several members it is a template for all of them, which the init container
// completes with the pod's name and the state of the cluster.
func (c cluster) adaptConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	raw, err := yaml.Marshal(c.configOf(ctx))
	if err != nil {
		return fmt.Errorf("encoding etcd's configuration: %w", err)
	}
	cm.Data = map[string]string{configKey: string(raw)}
	return nil
}

func (c cluster) configOf(ctx component.WorkloadContext) config {
	ns, n := ctx.HCP.Namespace, c.members(ctx)
	name := c.memberName(0)
	if n > 1 {
		name = anyMember
	}
	var founders []string
	for i := range n {
		founders = append(founders, c.memberName(i)+"="+c.peerURL(c.memberName(i), ns))
	}
	any := "0.0.0.0"
	if settings.IPv6(ctx.HCP) {
		any = "[::]"
	}
	tls := settings.TLSOf(ctx.HCP)
	return config{
		Name:                     name,
		DataDir:                  "/var/lib/data",
		InitialCluster:           strings.Join(founders, ","),
		InitialClusterState:      "new",
		InitialClusterToken:      c.token(ctx.HCP),
		InitialAdvertisePeerURLs: c.peerURL(name, ns),
		AdvertiseClientURLs:      "https://" + c.host(name, ns) + ":2379",
		ListenPeerURLs:           "https://" + any + ":2380",
		ListenClientURLs:         "https://" + any + ":2379",
		ListenMetricsURLs:        "http://" + any + ":2382",
		QuotaBackendBytes:        quota,
		SnapshotCount:            snapshotCount,
		ClientTransportSecurity:  tlsFiles("/etc/etcd/tls/server/server"),
		PeerTransportSecurity:    tlsFiles("/etc/etcd/tls/peer/peer"),
		TLSMinVersion:            tls.EtcdMinVersion(),
		CipherSuites:             tls.EtcdCipherSuites(),
	}
}

// tlsFiles are <prefix>.crt and <prefix>.key, and clients must show a certificate of etcd's own CA.
func tlsFiles(prefix string) transport {
	return transport{
		CertFile: prefix + ".crt", KeyFile: prefix + ".key",
		ClientCertAuth: true, TrustedCAFile: "/etc/etcd/tls/etcd-ca/ca.crt",
	}
}
