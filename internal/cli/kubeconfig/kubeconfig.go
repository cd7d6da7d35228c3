// Package kubeconfig prints the kubeconfigs of hosted clusters.
package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/outputfile"
	"hcp.internal/platform/internal/kube/kubeconfig"
	"hcp.internal/platform/internal/kube/read"
)

const (
	// secretKey is the key of a published kubeconfig in its Secret.
	secretKey = "kubeconfig"
	// pageSize bounds one answer of the API server.
	pageSize = 100
)

// hostedClusters is the list that completion reads names from.
var hostedClusters = hyperv1.GroupVersion.WithKind("HostedClusterList")

// Options says which kubeconfigs are wanted.
type Options struct {
	Connect   connect.Flags
	Name      string // of a HostedCluster; empty: all of the namespace, merged
	Namespace string
	// AllNamespaces asks for those of every namespace, merged. Name is empty then.
	AllNamespaces bool
}

// output is where a kubeconfig goes, and what is done to it before.
type output struct {
	file    string
	merge   bool
	forward bool
	ttl     time.Duration
}

// Command is `hypershift create kubeconfig`.
func Command() *cobra.Command {
	o := Options{Namespace: connect.DefaultNamespace}
	var to output
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the kubeconfig of a hosted cluster, or of all in a namespace",
		Long: `Print the kubeconfig of a hosted cluster, or without --name one kubeconfig with all clusters of the namespace, whose
contexts are named {namespace}-{name}. It contains an administrator's key: --output-file writes a file that only you can read.

With --merge, the contexts are added to your own kubeconfig, the first file of $KUBECONFIG or ~/.kube/config. With --ttl, the credential is a
token that expires, for ServiceAccount kube-system/hypershift-cli, which is created in the hosted cluster. With --port-forward, the server is a
port of this machine that leads to the API server through the management cluster, for as long as the command runs.`,
		Example: `  hypershift create kubeconfig demo --output-file demo.kubeconfig
  hypershift create kubeconfig demo --merge --ttl 8h
  hypershift create kubeconfig demo --port-forward --output-file demo.kubeconfig
  hypershift create kubeconfig --namespace clusters --output-file all.kubeconfig
  kubectl --kubeconfig all.kubeconfig --context clusters-demo get namespaces`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return to.run(cmd, o) },
	}
	cmd.Flags().StringVar(&o.Name, "name", o.Name, "Name of the hosted cluster (default: all of the namespace, merged)")
	cmd.Flags().StringVar(&to.file, "output-file", to.file, "File to write instead of standard output; only you can read it")
	cmd.Flags().BoolVar(&to.merge, "merge", to.merge, "Add the contexts to your own kubeconfig; the current context stays")
	cmd.Flags().BoolVar(&to.forward, "port-forward", to.forward, "Forward a local port to the API server through the management cluster, until interrupted; needs a name")
	cmd.Flags().DurationVar(&to.ttl, "ttl", to.ttl, "Lifetime of the credential, at least 10m; 0 means the published one, which lasts for months; needs a name")
	cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", o.AllNamespaces, "All hosted clusters of all namespaces, merged")
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", o.Namespace, "Namespace of the HostedCluster")
	cmd.MarkFlagsMutuallyExclusive("all-namespaces", "namespace")
	cmd.MarkFlagsMutuallyExclusive("merge", "output-file")
	o.Connect.AddFlags(cmd.Flags())
	connect.CompleteHostedClusters(cmd, &o.Connect, "name", &o.Namespace)
	connect.CompleteNamespaces(cmd, &o.Connect, "namespace")
	return cmd
}

func (to output) run(cmd *cobra.Command, o Options) error {
	ctx := cmd.Context()
	if o.Name == "" && (to.forward || to.ttl != 0) {
		return errors.New("--port-forward and --ttl are for one hosted cluster: name it")
	}
	if err := CheckLease(to.ttl); err != nil {
		return err
	}
	c, err := o.Connect.Client()
	if err != nil {
		return err
	}
	raw, err := Kubeconfig(ctx, c, o, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	var forwarding *Forwarding
	if to.forward {
		if forwarding, raw, err = o.forward(ctx, c, raw, cmd.ErrOrStderr()); err != nil {
			return err
		}
	}
	if to.ttl != 0 {
		var until time.Time
		if raw, until, err = Leased(ctx, raw, to.ttl); err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "the credential ends at %s\n", until.UTC().Format(time.RFC3339))
	}
	if err := to.write(cmd, o, raw); err != nil || forwarding == nil {
		return err
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "forwarding until interrupted")
	forwarding.Wait()
	return nil
}

// forward begins to forward, and gives the kubeconfig that goes that way.
func (o Options) forward(ctx context.Context, c client.Client, raw []byte, notes io.Writer) (*Forwarding, []byte, error) {
	config, err := o.Connect.RESTConfig()
	if err != nil {
		return nil, nil, err
	}
	f, err := Forward(ctx, config, c, o.Namespace, o.Name, notes)
	if err != nil {
		return nil, nil, err
	}
	raw, err = f.Kubeconfig(raw)
	return f, raw, err
}

func (to output) write(cmd *cobra.Command, o Options, raw []byte) error {
	switch {
	case to.merge:
		var err error
		if o.Name != "" {
			if raw, err = renamed(o.Namespace+"-"+o.Name, raw); err != nil {
				return err
			}
		}
		file, err := mergedFile()
		if err != nil {
			return err
		}
		names, err := mergeInto(file, raw)
		if err != nil {
			return err
		}
		slices.Sort(names)
		fmt.Fprintf(cmd.ErrOrStderr(), "%s has context %s\n", file, strings.Join(names, ", "))
		return nil
	case to.file != "":
		return outputfile.Write(to.file, raw, outputfile.Private)
	}
	if mode, open := readByOthers(cmd.OutOrStdout()); open {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: others can read the file that this goes to (mode %04o), and it holds an administrator's key: chmod 600 it, or use --output-file\n", mode)
	}
	_, err := cmd.OutOrStdout().Write(raw)
	return err
}

// Kubeconfig returns the kubeconfig that o asks for. Clusters without one yet are named on notes when all are wanted.
func Kubeconfig(ctx context.Context, c client.Client, o Options, notes io.Writer) ([]byte, error) {
	if o.Name != "" && o.AllNamespaces {
		return nil, errors.New("a name needs its namespace: leave out either the name or --all-namespaces")
	}
	where := "namespace " + o.Namespace
	if o.AllNamespaces {
		o.Namespace, where = "", "any namespace"
	}
	if o.Name != "" {
		hc := &hyperv1.HostedCluster{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, hc); err != nil {
			if apierrors.IsNotFound(err) {
				return nil, exit.With(exit.NotFound, fmt.Errorf("HostedCluster %s/%s not found: check its name and --namespace", o.Namespace, o.Name))
			}
			return nil, fmt.Errorf("reading HostedCluster %s/%s: %w", o.Namespace, o.Name, err)
		}
		return published(ctx, c, hc)
	}
	merged := clientcmdapi.NewConfig()
	list := &hyperv1.HostedClusterList{}
	for err := range read.Pages(ctx, c, list, pageSize, client.InNamespace(o.Namespace)) {
		if err != nil {
			return nil, fmt.Errorf("listing HostedClusters of %s: %w", where, err)
		}
		for i := range list.Items {
			hc := &list.Items[i]
			raw, err := published(ctx, c, hc)
			if err == nil {
				err = Merge(merged, hc.Namespace+"-"+hc.Name, raw)
			}
			if err != nil {
				fmt.Fprintf(notes, "left out: %v\n", err)
			}
		}
	}
	if len(merged.Contexts) == 0 {
		return nil, fmt.Errorf("no hosted cluster of %s has a kubeconfig yet", where)
	}
	return clientcmd.Write(*merged)
}

// published reads the kubeconfig that the operator published for a cluster. Whoever may write Secrets in the cluster's namespace may have replaced it, most
// of all while the cluster is paused; with what it said, programs would run as the user of this command.
func published(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster) ([]byte, error) {
	if hc.Status.KubeConfig == nil {
		return nil, fmt.Errorf("HostedCluster %s/%s has no kubeconfig yet: its API is still coming up; see its conditions with `kubectl describe hostedcluster %s --namespace %s`",
			hc.Namespace, hc.Name, hc.Name, hc.Namespace)
	}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: hc.Namespace, Name: hc.Status.KubeConfig.Name}, secret); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of HostedCluster %s/%s: %w", hc.Namespace, hc.Name, err)
	}
	raw := secret.Data[secretKey]
	if len(raw) == 0 {
		return nil, fmt.Errorf("Secret %s/%s has no key %s", secret.Namespace, secret.Name, secretKey)
	}
	switch _, err := kubeconfig.Foreign(raw); {
	case errors.Is(err, kubeconfig.ErrNone):
		return nil, fmt.Errorf("kubeconfig of %s-%s can't be parsed: see Secret %s/%s", hc.Namespace, hc.Name, secret.Namespace, secret.Name)
	case err != nil:
		return nil, fmt.Errorf("Secret %s/%s is not what was published for HostedCluster %s, so it is not used: %w. Delete the Secret: a cluster that is not paused gets another",
			secret.Namespace, secret.Name, hc.Name, err)
	}
	return raw, nil
}

// Merge adds the current context of a kubeconfig to merged. Cluster, user and context get the given name; the first one
// merged becomes the current context.
func Merge(merged *clientcmdapi.Config, name string, raw []byte) error {
	config, err := clientcmd.Load(raw)
	if err != nil {
		// The parser's error may quote the content, and the content is a key.
		return fmt.Errorf("kubeconfig of %s can't be parsed", name)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil && len(config.Contexts) == 1 {
		for _, only := range config.Contexts {
			current = only
		}
	}
	if current == nil {
		return fmt.Errorf("kubeconfig of %s has no current context", name)
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil {
		return errors.New("kubeconfig of " + name + " refers to a cluster or user that it doesn't hold")
	}
	merged.Clusters[name] = cluster
	merged.AuthInfos[name] = user
	merged.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: current.Namespace}
	if merged.CurrentContext == "" {
		merged.CurrentContext = name
	}
	return nil
}
