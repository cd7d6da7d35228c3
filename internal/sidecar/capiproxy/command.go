// Package capiproxy is the role capi-proxy: the proxy of package capigroup/proxy as a process beside a stock Cluster API program.
package capiproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"hcp.internal/platform/internal/capigroup/proxy"
)

const (
	// Name is the container's.
	Name = "kube-apiserver-proxy"
	// DefaultPort is where programs in the pod reach the API. 8080 is the port of metrics of some providers.
	DefaultPort = 6445
	// DefaultHealthPort is where the kubelet and Prometheus reach the proxy itself.
	DefaultHealthPort = 6446

	// serviceAccount is where the kubelet mounts a pod's credentials.
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"
	// headerTimeout is how long a client may take to say what it wants.
	headerTimeout = 30 * time.Second
	// idleTimeout is longer than any client keeps a connection for the next request.
	idleTimeout = 3 * time.Minute
	// maxHeader is far above what credentials and selectors take.
	maxHeader = 128 << 10
	// grace is what requests under way get when the pod stops; watches are cut.
	grace = 5 * time.Second
	// readyTimeout bounds the question whether the API server answers.
	readyTimeout = 5 * time.Second
)

// Options are the flags.
type Options struct {
	Port, HealthPort   int
	Upstream           string
	CAFile, TokenFile  string
	InjectToken        bool
	PlatformVisibility string
	WriteKubeconfig    string
}

// Command is `hcp-sidecar capi-proxy`.
func Command() *cobra.Command {
	o := Options{}
	cmd := &cobra.Command{
		Use:   "capi-proxy",
		Short: "Let stock Cluster API programs reach objects that are stored in HyperShift's own groups",
		Long: `Serve the API of the management cluster on 127.0.0.1 and [::1], with the groups *.cluster.hypershift.openshift.io under the names
*.cluster.x-k8s.io that stock Cluster API programs know. Everything else is as the API server has it.

Probes: /healthz and /readyz, metrics: /metrics, on the health port.`,
		Example: `  hcp-sidecar capi-proxy --inject-token
  KUBECONFIG with server: http://127.0.0.1:6445 for the programs beside it

  # outside of a pod
  hcp-sidecar capi-proxy --upstream=https://10.244.0.1:6443 --ca-file=ca.crt --token-file=token --inject-token`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.Run(cmd.Context(), slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), nil)))
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Port, "port", DefaultPort, "port on the loopback to serve the API on")
	f.IntVar(&o.HealthPort, "health-port", DefaultHealthPort, "port for probes and metrics")
	f.StringVar(&o.Upstream, "upstream", "", "URL of the API server; default: the one of the pod's environment")
	f.StringVar(&o.CAFile, "ca-file", serviceAccount+"/ca.crt", "CA of the API server; read again when it changes")
	f.StringVar(&o.TokenFile, "token-file", serviceAccount+"/token", "token for --inject-token; read again when it changes")
	f.BoolVar(&o.InjectToken, "inject-token", false, "send the token for callers that bring no credentials; not in pods of the host's network")
	f.StringVar(&o.WriteKubeconfig, "write-kubeconfig", "", "file to write a kubeconfig to by which programs beside the proxy reach it; it holds no credentials")
	f.StringVar(&o.PlatformVisibility, "platform-visibility", "hidden", "what to do with Cluster API's standard groups, if somebody else has them on this cluster: hidden, or swapped: shown under the private names")
	return cmd
}

// upstream is the API server's URL.
func (o *Options) upstream() (string, error) {
	if o.Upstream != "" {
		return o.Upstream, nil
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return "", errors.New("--upstream must be given outside of a pod: the URL of the API server")
	}
	return "https://" + net.JoinHostPort(host, port), nil
}

// Run serves until ctx ends.
func (o *Options) Run(ctx context.Context, log *slog.Logger) error {
	if o.PlatformVisibility != "hidden" && o.PlatformVisibility != "swapped" {
		return fmt.Errorf("--platform-visibility %q must be hidden or swapped", o.PlatformVisibility)
	}
	if ip := os.Getenv("POD_IP"); o.InjectToken && ip != "" && ip == os.Getenv("HOST_IP") {
		return errors.New("--inject-token must not be given in a pod of the host's network: every process of the node could use the token")
	}
	url, err := o.upstream()
	if err != nil {
		return err
	}
	conf := proxy.UpstreamConfig{URL: url, CAFile: o.CAFile}
	if o.InjectToken {
		conf.TokenFile = o.TokenFile
	}
	upstream, err := proxy.NewUpstream(conf)
	if err != nil {
		return err
	}
	if err := o.writeKubeconfig(); err != nil {
		return err
	}
	metrics := proxy.NewMetrics()
	handler := proxy.New(proxy.Config{Upstream: upstream, ShowPlatform: o.PlatformVisibility == "swapped", Metrics: metrics, Log: log})

	group, ctx := errgroup.WithContext(ctx)
	if err := serve(ctx, group, handler, loopback(o.Port)); err != nil {
		return err
	}
	own := http.NewServeMux()
	own.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	own.HandleFunc("GET /readyz", ready(upstream))
	own.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		metrics.Write(w)
	})
	if err := serve(ctx, group, own, []string{net.JoinHostPort("", strconv.Itoa(o.HealthPort))}); err != nil {
		return err
	}
	log.Info("serving", "port", o.Port, "healthPort", o.HealthPort, "upstream", url, "platformVisibility", o.PlatformVisibility)
	return group.Wait()
}

// ready answers 200 once the API server has answered.
func ready(upstream *proxy.Upstream) http.HandlerFunc {
	var once atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) {
		if once.Load() {
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := upstream.Ready(ctx); err != nil {
			http.Error(w, "the API server does not answer", http.StatusServiceUnavailable)
			return
		}
		once.Store(true)
	}
}

// loopback is the addresses of both families: "localhost" may be either.
func loopback(port int) []string {
	p := strconv.Itoa(port)
	return []string{net.JoinHostPort("127.0.0.1", p), net.JoinHostPort("::1", p)}
}

// serve listens on every address; one of IPv6 may be missing.
func serve(ctx context.Context, group *errgroup.Group, handler http.Handler, addresses []string) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		Protocols: new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	for i, address := range addresses {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			if i > 0 {
				continue // a machine without IPv6
			}
			return fmt.Errorf("listening on %s; choose another port if it is taken: %w", address, err)
		}
		group.Go(func() error {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serving on %s: %w", address, err)
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if err := server.Shutdown(stopping); err != nil {
			return ignoreDeadline(errors.Join(ignoreDeadline(err), server.Close()))
		}
		return nil
	})
	return nil
}

func ignoreDeadline(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
