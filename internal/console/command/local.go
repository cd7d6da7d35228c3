// Package command starts the console: on a person's own machine, and in a cluster.
package command

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/server"
	"hcp.internal/platform/internal/console/world"
)

// localOptions are the flags of "console".
type localOptions struct {
	connect   connect.Flags
	port      int
	namespace string
}

// Local is "console".
func Local() *cobra.Command {
	o := &localOptions{}
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Show the fleet live in a browser: hosted clusters, rollouts and packages, and why something is unhealthy",
		Long: `Serve the web console on this machine only, with the permissions of your kubeconfig, until interrupted. It prints a link that is valid for one
tab; each time a link has been used, it prints another one.

The console changes nothing without you: you may pause and resume rollouts, after you have seen the effect. It reads Secrets only for the
certificates page, which shows when they expire and never their keys.

It needs no other network, and nothing has to be installed. For a console that others can reach, too: hypershift install --console.`,
		Example: `  hypershift console
  hypershift console --context production --port 8443
  hypershift console -n clusters`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	fs := cmd.Flags()
	fs.IntVar(&o.port, "port", 0, "Port on 127.0.0.1; 0 means any free port")
	fs.StringVarP(&o.namespace, "namespace", "n", "", "Only hosted clusters of this namespace, for people who may not list those of all (default: of all namespaces)")
	o.connect.AddFlags(fs)
	connect.CompleteNamespaces(cmd, &o.connect, "namespace")
	return cmd
}

func (o *localOptions) run(ctx context.Context, out io.Writer) error {
	config, err := o.connect.RESTConfig()
	if err != nil {
		return err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: connect.Scheme()})
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	watching := *config
	watching.Timeout = 0 // a watch has no end
	w, err := client.NewWithWatch(&watching, client.Options{Scheme: connect.Scheme(), Mapper: c.RESTMapper()})
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", o.port))
	if err != nil {
		return fmt.Errorf("--port %d: %w; give another one, or 0 for any that is free", o.port, err)
	}
	where, user := o.who(config.Host)
	gate := &access.Own{User: user, Client: endless{c, w}}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	link := func() string { return fmt.Sprintf("http://%s/#ticket=%s", address, gate.Ticket()) }
	fmt.Fprintf(out, "The console of %s is at\n\n  %s\n\nThe link is good for one tab. Ctrl-C ends the console.\n", where, link())
	picture := world.New()
	go picture.Run(ctx, w, o.namespace, logr.Discard())
	s := &server.Server{World: picture, Gate: gate, Log: logr.Discard(), Clock: clock.RealClock{}, Hosts: []string{address, "localhost:" + port}, Where: where,
		OnTicket: func() { fmt.Fprintf(out, "For another tab: %s\n", link()) }}
	return s.Run(ctx, l)
}

// endless is a client whose watches have no end, whatever --request-timeout says of requests.
type endless struct {
	client.WithWatch
	watching client.WithWatch
}

// Watch implements client.WithWatch.
func (e endless) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	return e.watching.Watch(ctx, list, opts...)
}

// who names the management cluster and the user, as the kubeconfig does.
func (o *localOptions) who(host string) (where, user string) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.connect.Kubeconfig
	where, user = strings.TrimPrefix(host, "https://"), "you"
	config, err := rules.Load()
	if err != nil {
		return where, user
	}
	name := o.connect.Context
	if name == "" {
		name = config.CurrentContext
	}
	if c := config.Contexts[name]; c != nil {
		where = name
		if c.AuthInfo != "" {
			user = c.AuthInfo
		}
	}
	if o.connect.As != "" {
		user = o.connect.As
	}
	return where, user
}
