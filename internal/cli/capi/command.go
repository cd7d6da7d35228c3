package capi

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/capigroup/proxy"
	"hcp.internal/platform/internal/cli/child"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/contract/names"
)

// ExitError ends the process with a code. Err is printed unless it is nil.
type ExitError = exit.Error

// options are flags of all commands.
type options struct {
	connect         connect.Flags
	name, namespace string
}

func (o *options) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&o.name, "name", o.name, "Hosted cluster whose objects are meant if no namespace is given (default: the namespace of the kubeconfig)")
	fs.StringVarP(&o.namespace, "namespace", "n", o.namespace, "Namespace of the HostedCluster that --name names")
	o.connect.AddFlags(fs)
	connect.CompleteHostedClusters(cmd, &o.connect, "name", &o.namespace)
	connect.CompleteNamespaces(cmd, &o.connect, "namespace")
}

// view connects to the management cluster.
func (o *options) view(ctx context.Context) (*View, error) {
	cfg, err := o.connect.RESTConfig()
	if err != nil {
		return nil, err
	}
	upstream, err := Upstream(cfg)
	if err != nil {
		return nil, err
	}
	return NewView(ctx, upstream, clock.RealClock{})
}

// Command is "capi".
func Command() *cobra.Command {
	o := &options{namespace: "clusters"}
	cmd := &cobra.Command{
		Use:   "capi [flags] -- COMMAND [ARGUMENT...]",
		Short: "Show Cluster API objects under their standard names, however they are stored",
		Long: `Run a command with a KUBECONFIG that points to a proxy in this process. Through it, Cluster API objects have their standard names,
cluster.x-k8s.io, whether the management cluster stores them under these or in HyperShift's own groups, cluster.hypershift.openshift.io.
Everything else is as in the management cluster, and the command has the permissions of your kubeconfig. It exits with the command's code.

Nobody else on this machine can use the proxy: it requires a password that only the command's KUBECONFIG contains.`,
		Example: `  hypershift capi --name demo -- kubectl get machines
  hypershift capi -- kubectl annotate machine worker-abcde -n clusters-demo cluster.x-k8s.io/delete-machine=true
  hypershift capi -- clusterctl describe cluster demo-x7k2p -n clusters-demo
  hypershift capi --name demo -- sh`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return fmt.Errorf("unknown command %q: put -- before a command to run, as in `hypershift capi -- kubectl get machines`", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return o.run(cmd, args)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return []string{"kubectl\tthe usual commands", "clusterctl\tCluster API's own tool"}, cobra.ShellCompDirectiveDefault
		},
		SilenceErrors: true, SilenceUsage: true,
	}
	o.addFlags(cmd)
	cmd.AddCommand(proxyCommand(), verifyCommand(), migrateCommand())
	return cmd
}

// run runs a command behind the proxy.
func (o *options) run(cmd *cobra.Command, args []string) error {
	if _, err := child.Find(args[0]); err != nil {
		return err // before anything is asked of the cluster
	}
	// The command ends first, then the proxy.
	ctx, stop := context.WithCancel(context.WithoutCancel(cmd.Context()))
	view, err := o.view(cmd.Context())
	if err != nil {
		stop()
		return err
	}
	plain, err := listen(ctx, 0)
	if err != nil {
		stop()
		return err
	}
	listener, ca, err := encrypted(plain)
	if err != nil {
		stop()
		return errors.Join(err, plain.Close())
	}
	token, served := newToken(), make(chan struct{})
	go func() {
		defer close(served)
		_ = serve(ctx, listener, guarded(token, view)) // it ends because it is told to
	}()
	defer func() {
		stop()
		<-served
	}()
	raw, err := o.kubeconfig(listener.Addr(), ca, token)
	if err != nil {
		return err
	}
	return child.Run(cmd, child.Command{Args: args, Kubeconfig: raw, OwnCache: true})
}

// kubeconfig leads to the proxy.
func (o *options) kubeconfig(address net.Addr, ca []byte, token string) ([]byte, error) {
	ns, err := o.defaultNamespace()
	if err != nil {
		return nil, err
	}
	conf := clientcmdapi.NewConfig()
	conf.Clusters["capi"] = &clientcmdapi.Cluster{Server: "https://" + address.String(), CertificateAuthorityData: ca}
	conf.AuthInfos["capi"] = &clientcmdapi.AuthInfo{Token: token}
	conf.Contexts["capi"] = &clientcmdapi.Context{Cluster: "capi", AuthInfo: "capi", Namespace: ns}
	conf.CurrentContext = "capi"
	raw, err := clientcmd.Write(*conf)
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return raw, nil
}

// defaultNamespace is where objects are looked for if none is named.
func (o *options) defaultNamespace() (string, error) {
	if o.name != "" {
		return names.ControlPlaneNamespace(o.namespace, o.name), nil
	}
	return o.connect.Namespace()
}

func proxyCommand() *cobra.Command {
	o, port, file := &options{}, 0, ""
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Serve the standard view of Cluster API objects on the loopback interface",
		Long: `Serve the API of the management cluster on 127.0.0.1 until interrupted, with Cluster API objects under their standard names, however they
are stored. As with "kubectl proxy", requests need no credentials and have the permissions of your kubeconfig: anyone who can reach this
machine's loopback interface has them, too. If others work on the same machine, use "hypershift capi -- COMMAND" instead. Requests that a
browser sends for a web page of another site are refused.`,
		Example: `  hypershift capi proxy --port 8001 &
  kubectl --server http://127.0.0.1:8001 get machines -n clusters-demo
  curl http://127.0.0.1:8001/apis/cluster.x-k8s.io/v1beta2/namespaces/clusters-demo/machines
  hypershift capi proxy --record traffic.jsonl  # for hypershift capi verify --traffic`,
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if port < 0 || port > 65535 {
				return fmt.Errorf("--port %d: must be between 0 and 65535", port)
			}
			view, err := o.view(cmd.Context())
			if err != nil {
				return err
			}
			handler, recorded, err := record(file, view)
			if err != nil {
				return err
			}
			defer recorded.Close()
			listener, err := listen(cmd.Context(), port)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Starting to serve on %s\n", listener.Addr())
			return serve(cmd.Context(), listener, proxy.Local(handler))
		},
	}
	cmd.Flags().IntVar(&port, "port", 8001, "Port to serve on, on the loopback interface; 0 means any free port")
	cmd.Flags().StringVar(&file, "record", "", "File to append each request to, as a line of JSON. Bodies are kept of Cluster API's own objects alone, and of no answer")
	o.connect.AddFlags(cmd.Flags())
	return cmd
}
