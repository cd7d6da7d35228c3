package sharedingress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/process"
)

// Name is that of the program, for logs and API servers.
const Name = "shared-ingress"

// Pauses after a pass that failed.
const minBackoff, maxBackoff = time.Second, 10 * time.Second

const perBackendFlag = "max-connections-per-backend"

// flags are those of the command.
type flags struct {
	kubeconfig              string
	names, clusters         string
	metricsAddr, healthAddr string
	connections, perBackend int64
	perBackendGiven         bool
	begin, dial, drain      time.Duration
}

// Command is "shared-ingress".
func Command() *cobra.Command {
	d := DefaultLimits()
	f := flags{}
	cmd := &cobra.Command{
		Use:   Name,
		Short: "Serve all hosted clusters at one address, by server name and PROXY header",
		Long: `Serve the API servers, tunnels and other servers of all hosted clusters at one address.

Clients are led by the name that they ask for in TLS: spec.kubeAPIServerDNSName, and the hostnames of spec.services. Nodes, which ask for the same name everywhere, begin with a
PROXY header of version 2 whose TLV 0x20 is spec.clusterID. It holds no keys and writes nothing to the management cluster, so any number of it may run.`,
		Example: `  # in a pod behind a Service of type LoadBalancer
  hypershift-operator shared-ingress --listen-names :8443 --listen-clusters :6443

  # from a shell
  hypershift-operator shared-ingress --kubeconfig ~/.kube/config --listen-names 127.0.0.1:8443 --listen-clusters 127.0.0.1:6443 --metrics-addr 0 --health-probe-bind-address 0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.perBackendGiven = cmd.Flags().Changed(perBackendFlag)
			return f.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", process.KubeconfigUsage)
	fs.StringVar(&f.names, "listen-names", ":8443", "address for clients that are led by server name; 0 for none")
	fs.StringVar(&f.clusters, "listen-clusters", ":6443", "address for nodes, whose connections begin with a PROXY header; 0 for none")
	fs.StringVar(&f.metricsAddr, "metrics-addr", ":8080", "address that metrics are served on; 0 for none")
	fs.StringVar(&f.healthAddr, "health-probe-bind-address", ":9444", "address of /healthz and of /readyz, which answers once it is known where to lead; 0 for none")
	fs.Int64Var(&f.connections, "max-connections", d.Connections, "how many connections there may be at once")
	fs.Int64Var(&f.perBackend, perBackendFlag, d.PerBackend, "how many of them to one server of one hosted cluster; the default is at most a quarter of --max-connections")
	fs.DurationVar(&f.begin, "begin-timeout", d.Begin, "how long a client may take to say where it wants to go")
	fs.DurationVar(&f.dial, "dial-timeout", d.Dial, "how long a server may take to accept a connection")
	fs.DurationVar(&f.drain, "drain-timeout", d.Drain, fmt.Sprintf("how long connections may go on after the program was told to stop and has taken the last new one, %s later", d.LameDuck))
	return cmd
}

func (f flags) limits() (Limits, error) {
	if f.connections < 1 || f.perBackend < 1 || f.begin <= 0 || f.dial <= 0 || f.drain < 0 {
		return Limits{}, errors.New("--max-connections and --max-connections-per-backend must be at least 1, --begin-timeout and --dial-timeout more than 0, --drain-timeout not negative")
	}
	if !f.perBackendGiven {
		f.perBackend = min(f.perBackend, max(f.connections/4, 1))
	}
	l := DefaultLimits()
	l.Connections, l.PerBackend, l.Begin, l.Dial, l.Drain = f.connections, f.perBackend, f.begin, f.dial, f.drain
	l.PerCluster, l.Beginning = shareOf(l.Connections, l.PerBackend), beginningOf(l.Connections)
	return l, nil
}

func (f flags) run(ctx context.Context) error {
	limits, err := f.limits()
	if err != nil {
		return err
	}
	cfg, err := process.Connect(ctx, f.kubeconfig, Name)
	if err != nil {
		return err
	}
	scheme, err := process.Scheme(corev1.AddToScheme, hyperv1.AddToScheme)
	if err != nil {
		return err
	}
	proxy := NewProxy(limits)
	if err := proxy.Register(ctrlmetrics.Registry); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	r := &Reconciler{Proxy: proxy}
	mgr, err := process.NewManager(cfg, process.Options{
		Name: Name, Scheme: scheme, Cache: CacheOptions(), Stop: limits.Stop(),
		Serve: process.Serve{Metrics: f.metricsAddr, Health: f.healthAddr, Ready: ready(ctx, r)},
	})
	if err != nil {
		return err
	}
	r.Client = mgr.GetClient()
	if err := r.SetupWithManager(mgr); err != nil {
		return err
	}
	for address, withHeader := range map[string]bool{f.names: false, f.clusters: true} {
		if address == "0" || address == "" {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("listening on %s: %w", address, err)
		}
		if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return proxy.Serve(ctx, l, withHeader) })); err != nil {
			return err
		}
	}
	ctrl.LoggerFrom(ctx).Info("starting", "names", f.names, "clusters", f.clusters)
	return mgr.Start(ctx)
}

// ready answers /readyz, from when it is known where to lead until ctx ends. A load balancer that asks here goes elsewhere then, while new connections are
// still taken; Services do by themselves, because the Pod is being deleted.
func ready(ctx context.Context, r *Reconciler) healthz.Checker {
	return func(*http.Request) error {
		switch {
		case ctx.Err() != nil:
			return errors.New("it was told to stop")
		case !r.Ready():
			return errors.New("it is not known yet where to lead")
		}
		return nil
	}
}
