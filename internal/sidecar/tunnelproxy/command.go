// Package tunnelproxy lets the other containers of a pod reach the network of the hosted cluster: an HTTP and a SOCKS proxy on loopback, whose
// connections go through the tunnel of the control plane.
//
//	container ──HTTP CONNECT or SOCKS 5──▶ proxy ──CONNECT, mTLS──▶ konnectivity server ──▶ node ──▶ Service, identity provider
//	                                         └──▶ API of the cloud, where that is asked for
package tunnelproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpproxy"

	"hcp.internal/platform/internal/konnectivity"
	"hcp.internal/platform/internal/sidecar/kubeapi"
)

// maxClients bounds the connections of a proxy: those of one pod.
const maxClients = 1000

type options struct {
	dialer     Dialer
	host       string
	port       uint16
	serving    uint16
	files      konnectivity.Files
	kubeconfig string
}

// HTTPSCommand is `konnectivity-https-proxy run`.
func HTTPSCommand() *cobra.Command {
	o := &options{}
	cmd := o.command("konnectivity-https-proxy", "Reach the network of the hosted cluster by HTTP CONNECT", func(ctx context.Context, l net.Listener, log *slog.Logger) error {
		server := &http.Server{Handler: connectHandler(&o.dialer, log), ReadHeaderTimeout: greetingTimeout, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelInfo)}
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	f := cmd.Commands()[0].Flags()
	f.StringVar(&o.dialer.GuestProxy.HTTPProxy, "http-proxy", "", "proxy of the hosted cluster for http")
	f.StringVar(&o.dialer.GuestProxy.HTTPSProxy, "https-proxy", "", "proxy of the hosted cluster for https")
	f.StringVar(&o.dialer.GuestProxy.NoProxy, "no-proxy", "", "what the hosted cluster reaches without its proxy, separated by commas")
	return cmd
}

// Socks5Command is `konnectivity-socks5-proxy run`.
func Socks5Command() *cobra.Command {
	o := &options{}
	cmd := o.command("konnectivity-socks5-proxy", "Reach the network of the hosted cluster by SOCKS 5", func(ctx context.Context, l net.Listener, log *slog.Logger) error {
		stop := context.AfterFunc(ctx, func() { _ = l.Close() })
		defer stop()
		var clients sync.WaitGroup
		defer clients.Wait()
		for {
			conn, err := l.Accept()
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			clients.Go(func() {
				if err := serveSocks(ctx, conn, &o.dialer); err != nil {
					log.Info("no connection", "reason", err.Error())
				}
			})
		}
	})
	f := cmd.Commands()[0].Flags()
	f.BoolVar(&o.dialer.ResolveFromGuestClusterDNS, "resolve-from-guest-cluster-dns", false, "ask the DNS of the hosted cluster for names")
	f.BoolVar(&o.dialer.ResolveFromManagementClusterDNS, "resolve-from-management-cluster-dns", false, "ask the DNS of this pod for names that the hosted cluster doesn't know")
	f.BoolVar(&o.dialer.DisableResolver, "disable-resolver", false, "leave names to the other end of the tunnel")
	return cmd
}

func (o *options) command(name, short string, serve func(context.Context, net.Listener, *slog.Logger) error) *cobra.Command {
	example := "  control-plane-operator " + name + " run --serving-port=8090"
	cmd := &cobra.Command{Use: name, Short: short, Example: example, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	run := &cobra.Command{
		Use: "run", Short: short, Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		Example: example,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			l, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.serving))))
			if err != nil {
				return fmt.Errorf("listening for the containers of this pod (--serving-port): %w", err)
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			log.Info("serving", "address", l.Addr().String())
			return serve(cmd.Context(), &bounded{Listener: l, free: make(chan struct{}, maxClients)}, log)
		},
	}
	f := run.Flags()
	f.StringVar(&o.host, "konnectivity-hostname", "konnectivity-server-local", "host of the konnectivity server")
	f.Uint16Var(&o.port, "konnectivity-port", 8090, "port of the konnectivity server")
	f.Uint16Var(&o.serving, "serving-port", 8090, "port on loopback for the containers of this pod")
	f.StringVar(&o.files.CA, "ca-cert-path", "/etc/konnectivity/proxy-ca/ca.crt", "authority of the konnectivity server's certificate")
	f.StringVar(&o.files.Cert, "tls-cert-path", "/etc/konnectivity/proxy-client/tls.crt", "client certificate")
	f.StringVar(&o.files.Key, "tls-key-path", "/etc/konnectivity/proxy-client/tls.key", "key of --tls-cert-path")
	f.BoolVar(&o.dialer.ConnectDirectlyToCloudAPIs, "connect-directly-to-cloud-apis", false, "reach the APIs of clouds from here, by HTTPS_PROXY if it is set")
	f.BoolVar(&o.dialer.PreferIPv4, "prefer-ipv4", false, "take an IPv4 address where a name has several")
	cmd.AddCommand(run)
	return cmd
}

func (o *options) complete() error {
	tunnel, err := konnectivity.NewDialer(net.JoinHostPort(o.host, strconv.Itoa(int(o.port))), o.files)
	if err != nil {
		return err
	}
	o.kubeconfig = os.Getenv("KUBECONFIG")
	o.dialer.Tunnel = tunnel.DialContext
	o.dialer.Direct = (&net.Dialer{Timeout: connectingTimeout, KeepAlive: 30 * time.Second}).DialContext
	o.dialer.ManagementProxy = *httpproxy.FromEnvironment()
	o.dialer.LookupHost = net.DefaultResolver.LookupHost
	o.dialer.API = func() (*kubeapi.Client, error) {
		if o.kubeconfig == "" {
			return nil, errors.New("KUBECONFIG names no kubeconfig of the hosted cluster")
		}
		return kubeapi.FromKubeconfig(o.kubeconfig)
	}
	return nil
}

// bounded takes no more connections than it has places.
type bounded struct {
	net.Listener
	free chan struct{}
}

func (b *bounded) Accept() (net.Conn, error) {
	b.free <- struct{}{}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.free
		return nil, err
	}
	return &place{Conn: conn, leave: sync.OnceFunc(func() { <-b.free })}, nil
}

// place is a connection that leaves its place when it is closed.
type place struct {
	net.Conn
	leave func()
}

func (p *place) Close() error {
	defer p.leave()
	return p.Conn.Close()
}

// CloseWrite tells the client that nothing more comes.
func (p *place) CloseWrite() error {
	if half, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return p.Close()
}
