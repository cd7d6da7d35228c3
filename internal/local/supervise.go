package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/local/cgroup"
	"hcp.internal/platform/internal/local/cloud"
	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/mgmtpki"
	"hcp.internal/platform/internal/local/network"
	"hcp.internal/platform/internal/local/policy"
	"hcp.internal/platform/internal/local/registry"
	"hcp.internal/platform/internal/local/supervisor"
)

const (
	// supervisedGroup holds the supervisor and its children, containerd's shims among them. Pods have groups beside it.
	supervisedGroup = components.CgroupRoot + "/system"
	// nodeWeight keeps the node and its API ahead of pods that all start at once and want every processor: what waits for them costs
	// more in time limits and restarts than they use.
	nodeWeight   = 10
	headerLimit  = 10 * time.Second
	restartPause = 2 * time.Second
)

// Supervise runs everything until ctx ends. It is what the detached process does.
func Supervise(ctx context.Context, p components.Paths, clk clock.WithTicker, log logr.Logger) error {
	held, err := lock()
	if err != nil {
		return err
	}
	defer held.Close()
	cfg, err := readConfig(p)
	if err != nil {
		return err
	}
	groups, err := cgroup.Mounted()
	if err != nil {
		return err
	}
	if err := cgroup.Join(groups, supervisedGroup); err != nil {
		return err
	}
	if err := cgroup.Weigh(groups, supervisedGroup, nodeWeight); err != nil {
		return err
	}
	if err := network.Ensure(ctx, cfg.Network); err != nil {
		return fmt.Errorf("setting up the network: %w", err)
	}
	pki, err := components.PKI(p, clk.Now())
	if err != nil {
		return err
	}
	files, err := components.Files(p, pki)
	if err != nil {
		return err
	}
	if err := components.Write(p, files); err != nil {
		return err
	}
	if err := serveRegistry(ctx, p, log.WithValues("part", "registry")); err != nil {
		return err
	}
	go runCloud(ctx, p, clk, log)
	go runPolicies(ctx, p, clk, log)
	hash, err := configHash(p, cfg, pki)
	if err != nil {
		return err
	}
	sup := &supervisor.Supervisor{
		Processes: components.Processes(p, pki), LogDir: p.Logs(), StatusFile: p.Status(), ConfigHash: hash, Clock: clk, Log: log,
	}
	keeper := &network.Keeper{Options: cfg.Network, Clock: clk, Log: log.WithValues("part", "network"), RestartProxy: func() { sup.Restart(components.Proxy) }}
	go keeper.Run(ctx)
	return sup.Run(ctx)
}

// configHash changes when a running supervisor would start its processes differently.
func configHash(p components.Paths, cfg supervisorConfig, pki *mgmtpki.Bundle) (string, error) {
	files, err := components.Files(p, pki)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(cfg.KubernetesBinary)
	if err != nil {
		return "", fmt.Errorf("looking at the Kubernetes binary: %w", err)
	}
	data, err := json.Marshal([]any{cfg, files, components.Processes(p, pki), info.Size(), info.ModTime()})
	if err != nil {
		return "", fmt.Errorf("encoding what runs: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

// serveRegistry listens on loopback for this machine's tools and on the node's address for containerd and pods.
func serveRegistry(ctx context.Context, p components.Paths, log logr.Logger) error {
	handler, err := registry.New(p.Registry(), log)
	if err != nil {
		return err
	}
	for _, host := range []string{"127.0.0.1", network.NodeIP} {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, components.RegistryPort))
		if err != nil {
			return fmt.Errorf("opening the registry's port: %w", err)
		}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: headerLimit}
		go func() { _ = server.Serve(l) }() // ends with the process
	}
	return nil
}

// runCloud keeps the cloud controllers running: they end only when ctx does, or their client cannot be built.
func runCloud(ctx context.Context, p components.Paths, clk clock.WithTicker, log logr.Logger) {
	keepRunning(ctx, p, clk, log.WithValues("part", "cloud controllers"), func(cfg *rest.Config) error {
		return cloud.Run(ctx, cloud.Options{Config: cfg, VolumeDir: p.Volumes(), Node: components.NodeName, Pool: netip.MustParsePrefix(network.LoadBalancerCIDR), Log: log})
	})
}

// runPolicies keeps network policies enforced.
func runPolicies(ctx context.Context, p components.Paths, clk clock.WithTicker, log logr.Logger) {
	keepRunning(ctx, p, clk, log.WithValues("part", "network policies"), func(cfg *rest.Config) error {
		return policy.Run(ctx, policy.Options{Config: cfg, Clock: clk, Log: log.WithValues("controller", "policy")})
	})
}

// keepRunning starts what works with the management API again when it ends before ctx does.
func keepRunning(ctx context.Context, p components.Paths, clk clock.WithTicker, log logr.Logger, run func(*rest.Config) error) {
	for ctx.Err() == nil {
		cfg, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig())
		if err == nil {
			cfg.QPS = -1 // the API server's own fairness is enough on one machine
			err = run(cfg)
		}
		if err != nil && ctx.Err() == nil {
			log.Error(err, "running beside the management API")
		}
		select {
		case <-ctx.Done():
		case <-clk.After(restartPause):
		}
	}
}
