package components

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"hcp.internal/platform/internal/local/mgmtpki"
	"hcp.internal/platform/internal/local/network"
	"hcp.internal/platform/internal/local/supervisor"
)

// Names of the processes, which are also the names of their logs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Containerd        = "containerd"
	Kubelet           = "kubelet"
	Proxy             = "kube-proxy"
)

// Addresses of local mode.
const (
	NodeName      = "local"
	APIURL        = "https://" + network.NodeIP + ":6443"
	RegistryPort  = "5000"
	RegistryHost  = network.NodeIP + ":" + RegistryPort
	PauseImage    = RegistryHost + "/hypershift/pause:local"
	CgroupRoot    = network.Group
	etcdURL       = "https://127.0.0.1:2379"
	cniBinFolder  = "/usr/lib/cni"
	etcdQuota     = "2147483648"
	kubeletPort   = "10250"
	proxyHealth   = "127.0.0.1:10256"
	kubeletHealth = "127.0.0.1:10248"
)

// Ports are the addresses that must be free on the machine.
func Ports() []string {
	ports := []string{"127.0.0.1:" + RegistryPort, network.NodeIP + ":" + RegistryPort, network.NodeIP + ":6443", network.NodeIP + ":" + kubeletPort, network.NodeIP + ":" + DNSPort}
	for _, p := range []string{"2379", "2380", "10248", "10249", "10256", "10257", "10259"} {
		ports = append(ports, "127.0.0.1:"+p)
	}
	return ports
}

// DNSPort is where CoreDNS listens on the node's address. Not 53, which a resolver of the machine may hold on all addresses.
const DNSPort = "1053"

// roomy lets the heap of the busiest processes grow to three times of what is live. While many control planes start, the collector would
// take more than a fourth of their processor time; an eighth is enough. There is one of each, so the memory counts little.
var roomy = []string{"GOGC=200"}

// Processes in the order in which they start.
func Processes(p Paths, pki *mgmtpki.Bundle) []supervisor.Process {
	probe := newProber(pki)
	secure := func(port string) func(context.Context) error {
		return probe.get("https://127.0.0.1:" + port + "/healthz")
	}
	return []supervisor.Process{
		{Name: Etcd, Path: p.Bin(Etcd), Args: etcdArgs(p, pki), Ready: probe.get(etcdURL + "/readyz")},
		{Name: Containerd, Path: "/usr/bin/containerd", Args: []string{"--config", p.Conf("containerd.toml")}, Env: roomy, Ready: socket(p.ContainerdSocket())},
		{Name: APIServer, Path: p.Bin(APIServer), Args: apiServerArgs(p, pki), Env: roomy, After: []string{Etcd}, Ready: probe.get(APIURL + "/readyz")},
		{Name: ControllerManager, Path: p.Bin(ControllerManager), Args: controllerManagerArgs(pki), After: []string{APIServer}, Ready: secure("10257")},
		{Name: Scheduler, Path: p.Bin(Scheduler), Args: schedulerArgs(pki), After: []string{APIServer}, Ready: secure("10259")},
		{Name: Kubelet, Path: p.Bin(Kubelet), Args: kubeletArgs(p, pki), Env: roomy, After: []string{APIServer, Containerd}, Ready: probe.get("http://" + kubeletHealth + "/healthz")},
		{Name: Proxy, Path: p.Bin(Proxy), Args: []string{"--config", p.Conf("kube-proxy.yaml")}, After: []string{APIServer}, Ready: probe.get("http://" + proxyHealth + "/livez")},
	}
}

func etcdArgs(p Paths, pki *mgmtpki.Bundle) []string {
	return []string{
		"--name=local", "--data-dir=" + p.Etcd(),
		"--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=https://127.0.0.1:2380", "--initial-advertise-peer-urls=https://127.0.0.1:2380",
		"--initial-cluster=local=https://127.0.0.1:2380",
		"--client-cert-auth", "--trusted-ca-file=" + pki.Cert("ca"), "--cert-file=" + pki.Cert(Etcd), "--key-file=" + pki.Key(Etcd),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + pki.Cert("ca"), "--peer-cert-file=" + pki.Cert(Etcd), "--peer-key-file=" + pki.Key(Etcd),
		"--quota-backend-bytes=" + etcdQuota, "--auto-compaction-mode=periodic", "--auto-compaction-retention=5m", "--log-level=warn",
	}
}

func apiServerArgs(p Paths, pki *mgmtpki.Bundle) []string {
	return []string{
		"--bind-address=" + network.NodeIP, "--advertise-address=" + network.NodeIP, "--secure-port=6443",
		"--etcd-servers=" + etcdURL, "--etcd-cafile=" + pki.Cert("ca"), "--etcd-certfile=" + pki.Cert("etcd-client"), "--etcd-keyfile=" + pki.Key("etcd-client"),
		"--service-cluster-ip-range=" + network.ServiceCIDR,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--tls-cert-file=" + pki.Cert(APIServer), "--tls-private-key-file=" + pki.Key(APIServer), "--client-ca-file=" + pki.Cert("ca"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + publicKey(pki), "--service-account-signing-key-file=" + pki.Key("sa"),
		"--kubelet-certificate-authority=" + pki.Cert("ca"),
		"--kubelet-client-certificate=" + pki.Cert("kubelet-client"), "--kubelet-client-key=" + pki.Key("kubelet-client"),
		// exec and logs go to the node's address; its name is known to nobody.
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + pki.Cert("ca"), "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + pki.Cert("front-proxy"), "--proxy-client-key-file=" + pki.Key("front-proxy"),
		// Who asks what: 20 MB at most, and about a kilobyte for each request.
		"--audit-policy-file=" + p.Conf(auditPolicyFile), "--audit-log-path=" + p.Audit(), "--audit-log-maxsize=10", "--audit-log-maxbackup=1",
		"--profiling=false",
	}
}

func publicKey(pki *mgmtpki.Bundle) string {
	key := pki.Key("sa")
	return key[:len(key)-len(".key")] + ".pub"
}

func controllerManagerArgs(pki *mgmtpki.Bundle) []string {
	kubeconfig := pki.Kubeconfig(ControllerManager)
	return []string{
		"--bind-address=127.0.0.1", "--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--tls-cert-file=" + pki.Cert("loopback"), "--tls-private-key-file=" + pki.Key("loopback"),
		"--service-account-private-key-file=" + pki.Key("sa"), "--root-ca-file=" + pki.Cert("ca"), "--use-service-account-credentials",
		"--cluster-signing-cert-file=" + pki.Cert("ca"), "--cluster-signing-key-file=" + pki.Key("ca"),
		"--allocate-node-cidrs", "--cluster-cidr=" + network.ClusterCIDR, "--leader-elect=false", "--profiling=false",
		// A namespace takes some two hundred requests to go, and what its objects own some hundred more. With the usual 20 requests a second
		// for each controller, hosted clusters that are destroyed together would wait for each other.
		"--kube-api-qps=200", "--kube-api-burst=400", "--concurrent-namespace-syncs=20",
	}
}

func schedulerArgs(pki *mgmtpki.Bundle) []string {
	kubeconfig := pki.Kubeconfig(Scheduler)
	return []string{
		"--bind-address=127.0.0.1", "--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--tls-cert-file=" + pki.Cert("loopback"), "--tls-private-key-file=" + pki.Key("loopback"), "--leader-elect=false", "--profiling=false",
	}
}

func kubeletArgs(p Paths, pki *mgmtpki.Bundle) []string {
	return []string{
		"--config=" + p.Conf("kubelet.yaml"), "--kubeconfig=" + pki.Kubeconfig(Kubelet), "--hostname-override=" + NodeName,
		"--node-ip=" + network.NodeIP, "--root-dir=" + p.Kubelet(), "--cert-dir=" + p.PKI(),
	}
}

// prober asks processes for their health with the client certificate of the cluster's administrator.
type prober struct {
	client *http.Client
	err    error
}

func newProber(pki *mgmtpki.Bundle) *prober {
	cert, err := tls.LoadX509KeyPair(pki.Cert("admin"), pki.Key("admin"))
	if err != nil {
		return &prober{err: fmt.Errorf("reading the administrator's certificate: %w", err)}
	}
	caPEM, err := os.ReadFile(pki.Cert("ca"))
	if err != nil {
		return &prober{err: fmt.Errorf("reading the certificate authority: %w", err)}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caPEM)
	return &prober{client: &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true, // a probe must see a process that was replaced
	}}}
}

func (p *prober) get(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		if p.err != nil {
			return p.err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := p.client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
			return fmt.Errorf("%s answers %s: %s", url, resp.Status, body)
		}
		return nil
	}
}

func socket(path string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}
