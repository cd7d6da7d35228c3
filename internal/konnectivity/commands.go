package konnectivity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
)

// Names of certificates, as the control plane's PKI issues them.
const (
	clientName = "konnectivity-client"
	agentName  = "konnectivity-agent"
)

// ServerCommand is `konnectivity-server`, and `proxy-server` where manifests call the stock program of that name. Its flags
// are the stock ones as far as they mean something here.
func ServerCommand() *cobra.Command {
	o := ServerOptions{Now: time.Now}
	var (
		mode, strategies, minVersion, bind, healthBind string
		suites                                         []string
		port, agentPort, adminPort, healthPort         int
		frontKeepAlive                                 time.Duration
	)
	cmd := &cobra.Command{
		Use:     "konnectivity-server",
		Aliases: []string{"proxy-server"},
		Short:   "Connect kube-apiserver to the agents on its cluster's workers",
		Example: `  konnectivity-server --server-cert=tls.crt --server-key=tls.key --server-ca-cert=ca.crt \
    --cluster-cert=agents.crt --cluster-key=agents.key --cluster-ca-cert=ca.crt --server-count=1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if mode != "http-connect" {
				return fmt.Errorf("--mode is %q: only http-connect is served", mode)
			}
			if o.Count < 1 || o.Count > maxServers {
				return fmt.Errorf("--server-count is %d: it must be from 1 to %d", o.Count, maxServers)
			}
			if o.ShutdownDelay < 0 || o.DrainTimeout < 0 {
				return errors.New("--shutdown-delay and --drain-timeout can't be negative")
			}
			var err error
			if o.Protocol, err = ParseProtocol(minVersion, suites); err != nil {
				return err
			}
			o.Log = logger()
			if o.ID == "" {
				if o.ID, err = os.Hostname(); err != nil {
					return fmt.Errorf("finding the host name, which identifies this server: %w", err)
				}
			}
			return runServer(cmd.Context(), o, net.JoinHostPort(bind, strconv.Itoa(port)), net.JoinHostPort(bind, strconv.Itoa(agentPort)),
				net.JoinHostPort(healthBind, strconv.Itoa(healthPort)))
		},
	}
	f := cmd.Flags()
	f.StringVar(&mode, "mode", "http-connect", "protocol towards kube-apiserver; only http-connect")
	f.StringVar(&strategies, "proxy-strategies", "destHost,default", "order in which agents are chosen; always those that claim the target, then default ones")
	f.StringVar(&o.ID, "server-id", "", "identity of this server among those behind the same address; default: the host name")
	f.StringVar(&bind, "bind-address", "", "address to listen on; default: all")
	f.StringVar(&healthBind, "health-bind-address", "", "address to listen on for health checks; default: all")
	f.IntVar(&port, "server-port", 8090, "port for kube-apiserver")
	f.IntVar(&agentPort, "agent-port", 8091, "port for agents")
	f.IntVar(&healthPort, "health-port", 2041, "port of /healthz and /readyz, plain HTTP")
	f.IntVar(&adminPort, "admin-port", 8093, "known to the stock server; not served")
	f.IntVar(&o.Count, "server-count", 1, "how many servers agents have to find")
	f.StringVar(&o.Front.Cert, "server-cert", "", "certificate towards kube-apiserver")
	f.StringVar(&o.Front.Key, "server-key", "", "key of --server-cert")
	f.StringVar(&o.Front.CA, "server-ca-cert", "", "authority of kube-apiserver's client certificate")
	f.StringVar(&o.Agents.Cert, "cluster-cert", "", "certificate towards agents")
	f.StringVar(&o.Agents.Key, "cluster-key", "", "key of --cluster-cert")
	f.StringVar(&o.Agents.CA, "cluster-ca-cert", "", "authority of agents' client certificates")
	f.StringSliceVar(&o.FrontNames, "server-client-names", []string{clientName}, "common names of client certificates that may ask for tunnels")
	f.StringSliceVar(&o.AgentNames, "cluster-client-names", []string{agentName}, "common names of client certificates that agents may have")
	f.IntVar(&o.MaxAgents, "max-agents", DefaultMaxAgents, "agents that may be connected at a time")
	f.IntVar(&o.MaxTunnels, "max-tunnels", DefaultMaxTunnels, "tunnels that may be open at a time")
	f.DurationVar(&o.KeepAlive, "keepalive-time", 30*time.Second, "silence of an agent after which it is asked for a sign of life")
	f.DurationVar(&o.ShutdownDelay, "shutdown-delay", 0, "how long new tunnels are made after the server was told to end")
	f.DurationVar(&o.DrainTimeout, "drain-timeout", drainTimeout, "how long tunnels that exist may go on after that")
	f.DurationVar(&frontKeepAlive, "frontend-keepalive-time", 30*time.Second, "known to the stock server; TCP does this here")
	addCommon(f, &minVersion, &suites)
	for _, name := range []string{"server-cert", "server-key", "server-ca-cert", "cluster-cert", "cluster-key", "cluster-ca-cert"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // a misspelt flag above
		}
	}
	return cmd
}

func runServer(ctx context.Context, o ServerOptions, front, agents, health string) error {
	server, err := NewServer(o)
	if err != nil {
		return err
	}
	listen := &net.ListenConfig{KeepAlive: o.KeepAlive}
	frontListener, err := listen.Listen(ctx, "tcp", front)
	if err != nil {
		return fmt.Errorf("listening for kube-apiserver: %w", err)
	}
	agentListener, err := listen.Listen(ctx, "tcp", agents)
	if err != nil {
		return fmt.Errorf("listening for agents: %w", err)
	}
	o.Log.Info("serving", "id", o.ID, "servers", o.Count, "kubeAPIServer", front, "agents", agents)
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(groupCtx, frontListener, agentListener) })
	group.Go(func() error {
		return serveHealth(groupCtx, health, func() error {
			if !server.ready.Load() {
				return errors.New("not serving")
			}
			return nil
		})
	})
	return group.Wait()
}

// AgentCommand is `konnectivity-agent`, and `proxy-agent` where manifests call the stock program of that name.
func AgentCommand() *cobra.Command {
	o := AgentOptions{Now: time.Now}
	var (
		minVersion, healthHost string
		suites                 []string
		healthPort, adminPort  int
		probe                  time.Duration
	)
	cmd := &cobra.Command{
		Use:     "konnectivity-agent",
		Aliases: []string{"proxy-agent"},
		Short:   "Let the control plane of this cluster reach its nodes, pods and Services",
		Example: `  konnectivity-agent --ca-cert=ca.crt --agent-cert=tls.crt --agent-key=tls.key \
    --proxy-server-host=10.244.0.1 --proxy-server-port=30091 --agent-identifiers=default-route=true`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Protocol, err = ParseProtocol(minVersion, suites); err != nil {
				return err
			}
			if o.SyncInterval <= 0 || o.SyncIntervalCap < o.SyncInterval {
				return errors.New("--sync-interval must be positive and not above --sync-interval-cap")
			}
			o.Log = logger()
			if o.ID == "" {
				if o.ID, err = os.Hostname(); err != nil {
					return fmt.Errorf("finding the host name, which identifies this agent: %w", err)
				}
			}
			agent, err := NewAgent(o)
			if err != nil {
				return err
			}
			group, ctx := errgroup.WithContext(cmd.Context())
			group.Go(func() error { return agent.Run(ctx) })
			group.Go(func() error {
				return serveHealth(ctx, net.JoinHostPort(healthHost, strconv.Itoa(healthPort)), func() error {
					if have, want := agent.Connected(); have == 0 {
						return fmt.Errorf("connected to %d of %d servers", have, want)
					}
					return nil
				})
			})
			return group.Wait()
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Host, "proxy-server-host", "", "name or address of the servers")
	f.IntVar(&o.Port, "proxy-server-port", 8091, "port of the servers")
	f.StringVar(&o.Files.CA, "ca-cert", "", "authority of the servers' certificates")
	f.StringVar(&o.Files.Cert, "agent-cert", "", "certificate of this agent")
	f.StringVar(&o.Files.Key, "agent-key", "", "key of --agent-cert")
	f.StringVar(&o.ID, "agent-id", "", "name of this agent in logs; default: the host name")
	f.StringVar(&o.Identifiers, "agent-identifiers", "default-route=true", "what this agent is asked for, as a URL query: default-route=true, ipv4=, ipv6=, host=")
	f.StringVar(&healthHost, "health-server-host", "", "address of /healthz and /readyz; default: all, as with the stock agent")
	f.IntVar(&healthPort, "health-server-port", 2041, "port of /healthz and /readyz, plain HTTP")
	f.IntVar(&adminPort, "admin-server-port", 0, "known to the stock agent; not served")
	f.DurationVar(&o.KeepAlive, "keepalive-time", 30*time.Second, "silence of a server after which it is asked for a sign of life")
	f.DurationVar(&probe, "probe-interval", 5*time.Second, "known to the stock agent; a lost connection shows by itself here")
	f.DurationVar(&o.SyncInterval, "sync-interval", 5*time.Second, "first pause after a failed attempt to connect")
	f.DurationVar(&o.SyncIntervalCap, "sync-interval-cap", 30*time.Second, "longest pause between attempts")
	addCommon(f, &minVersion, &suites)
	for _, name := range []string{"proxy-server-host", "ca-cert", "agent-cert", "agent-key"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // a misspelt flag above
		}
	}
	return cmd
}

// addCommon adds what both programs and their stock counterparts take.
func addCommon(f *pflag.FlagSet, minVersion *string, suites *[]string) {
	f.StringVar(minVersion, "tls-min-version", "VersionTLS12", "oldest version of TLS: VersionTLS12 or VersionTLS13")
	f.StringSliceVar(suites, "cipher-suites", nil, "cipher suites of TLS 1.2; default: Go's")
	// Of the stock programs' logging: there is one way to log here.
	f.Int("v", 0, "known to the stock program; no effect")
	f.Bool("logtostderr", true, "known to the stock program; no effect")
	f.Int("log-file-max-size", 0, "known to the stock program; no effect")
}

func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
}
