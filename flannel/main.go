// Command flannel gives the pods of a node their network: flannel's host-gw backend, with the node's pod CIDR as its lease.
//
// Stock flannel links backends of several clouds. This one is built from its libraries and holds what a network of directly
// reachable nodes needs: routes to the pods of every other node, and the rules that hide pods behind their node when they
// leave the pod network. It also writes the container runtime's network configuration, once both are in place, so that a node
// is Ready no sooner than its pods can talk.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/hostgw"
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/subnet"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"github.com/flannel-io/flannel/pkg/trafficmngr"
	"github.com/flannel-io/flannel/pkg/trafficmngr/nftables"
	"k8s.io/klog/v2"
)

const (
	// annotationPrefix is that of stock flannel, so that tools which look at nodes find what they know.
	annotationPrefix = "flannel.alpha.coreos.com"
	// resyncSeconds is how often lost rules are put back.
	resyncSeconds = 30
	// stopTimeout bounds what is waited for after SIGTERM.
	stopTimeout = 5 * time.Second
)

type options struct {
	netConf    string
	cniConf    string
	nodeIP     string
	healthAddr string
	kubeconfig string
}

func main() {
	klog.InitFlags(nil)
	var o options
	flag.StringVar(&o.netConf, "net-config-path", "/etc/kube-flannel/net-conf.json", "network configuration in flannel's format; its backend must be host-gw")
	flag.StringVar(&o.cniConf, "cni-config-path", "/etc/cni/net.d/10-flannel.conflist", "where the container runtime's network configuration is written")
	flag.StringVar(&o.nodeIP, "node-ip", os.Getenv("NODE_IP"), "address of this node that other nodes route to")
	flag.StringVar(&o.healthAddr, "health-addr", "127.0.0.1:10290", "address of /healthz and /readyz")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig; default: the cluster that this runs in")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil && ctx.Err() == nil {
		klog.ErrorS(err, "flannel ends")
		klog.Flush()
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := &atomic.Bool{}
	if err := serveHealth(ctx, o.healthAddr, ready); err != nil {
		return err
	}
	sm, err := kube.NewSubnetManager(ctx, "", o.kubeconfig, annotationPrefix, o.netConf, true)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	config, err := sm.GetNetworkConfig(ctx)
	if err != nil {
		return fmt.Errorf("reading %s: %w", o.netConf, err)
	}
	if config.BackendType != "host-gw" || !config.EnableNFTables {
		return fmt.Errorf("%s asks for backend %q, nftables %t; this flannel has only host-gw with nftables", o.netConf, config.BackendType, config.EnableNFTables)
	}
	stack, err := ipmatch.GetIPFamily(config.EnableIPv4, config.EnableIPv6)
	if err != nil {
		return fmt.Errorf("%s: %w", o.netConf, err)
	}
	iface, err := ipmatch.LookupExtIface(o.nodeIP, "", "", stack, ipmatch.PublicIPOpts{PublicIP: o.nodeIP})
	if err != nil {
		return fmt.Errorf("finding the interface of %q: %w", o.nodeIP, err)
	}
	host, err := backend.NewManager(ctx, sm, iface).GetBackend(config.BackendType)
	if err != nil {
		return fmt.Errorf("starting the backend: %w", err)
	}
	var wg sync.WaitGroup
	network, err := host.RegisterNetwork(ctx, &wg, config)
	if err != nil {
		return fmt.Errorf("taking this node's pod CIDR (does the node have spec.podCIDR?): %w", err)
	}
	if err := masquerade(ctx, config, network); err != nil {
		return err
	}
	running := make(chan struct{})
	go func() { defer close(running); network.Run(ctx) }()
	if err := writeCNI(o.cniConf, network.Lease(), network.MTU()); err != nil {
		return err
	}
	ready.Store(true)
	klog.InfoS("network is ready", "subnet", network.Lease().Subnet.String(), "mtu", network.MTU(), "node", o.nodeIP)
	if err := sm.CompleteLease(ctx, network.Lease(), &wg); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("keeping the lease of %s: %w", network.Lease().Subnet, err)
	}
	select {
	case <-running:
		if ctx.Err() == nil {
			return errors.New("the backend ended by itself")
		}
	case <-ctx.Done():
		// Routes, rules and the CNI configuration stay: pods keep their network while this pod is replaced.
		select {
		case <-running:
		case <-time.After(stopTimeout):
		}
	}
	return nil
}

// masquerade hides pods behind their node outside the pod network, and lets forwarded packets of pods pass.
func masquerade(ctx context.Context, config *subnet.Config, network backend.Network) error {
	var rules trafficmngr.TrafficManager = &nftables.NFTablesManager{}
	if err := rules.Init(ctx); err != nil {
		return fmt.Errorf("preparing packet filter rules (is nft on the PATH?): %w", err)
	}
	err := rules.SetupAndEnsureMasqRules(ctx, config.Network, ip.IP4Net{}, ip.IP4Net{}, config.IPv6Network, ip.IP6Net{}, ip.IP6Net{},
		network.Lease(), resyncSeconds, false)
	if err != nil {
		return fmt.Errorf("writing masquerading rules: %w", err)
	}
	rules.SetupAndEnsureForwardRules(ctx, config.Network, config.IPv6Network, resyncSeconds)
	return nil
}

func serveHealth(ctx context.Context, addr string, ready *atomic.Bool) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "the network isn't set up yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	server := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	go func() { <-ctx.Done(); _ = server.Close() }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving %s: %w", addr, err)
	case <-time.After(50 * time.Millisecond): // a port that is taken shows at once
		return nil
	}
}
