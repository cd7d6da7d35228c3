// Package kubeconfig prints the kubeconfigs of hosted clusters.
package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/kube/read"
)

const (
	// secretKey is the key of a published kubeconfig in its Secret.
	secretKey = "kubeconfig"
	// pageSize bounds one answer of the API server.
	pageSize = 100
)

// Options says which kubeconfigs are wanted.
type Options struct {
	Connect   connect.Flags
	Name      string // of a HostedCluster; empty: all of the namespace, merged
	Namespace string
	// AllNamespaces asks for those of every namespace, merged. Name is empty then.
	AllNamespaces bool
}

// Command is `hypershift create kubeconfig`.
func Command() *cobra.Command {
	o := Options{Namespace: connect.DefaultNamespace}
	file := ""
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the kubeconfig of a hosted cluster, or of all of a namespace",
		Long: `Print the kubeconfig of a hosted cluster, or with no --name one kubeconfig with all clusters of the namespace, whose
contexts are named {namespace}-{name}. It holds an administrator's key: --output-file writes a file that only you can read.`,
		Example: `  hypershift create kubeconfig demo --output-file demo.kubeconfig
  hypershift create kubeconfig --namespace clusters --output-file all.kubeconfig
  kubectl --kubeconfig all.kubeconfig --context clusters-demo get namespaces`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.Connect.Client()
			if err != nil {
				return err
			}
			raw, err := Kubeconfig(cmd.Context(), c, o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if file != "" {
				return writePrivate(file, raw)
			}
			if mode, open := readByOthers(cmd.OutOrStdout()); open {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: others can read the file that this goes to (mode %04o), and it holds an administrator's key: chmod 600 it, or use --output-file\n", mode)
			}
			_, err = cmd.OutOrStdout().Write(raw)
			return err
		},
	}
	cmd.Flags().StringVar(&o.Name, "name", o.Name, "Name of the hosted cluster (default: all of the namespace, merged)")
	cmd.Flags().StringVar(&file, "output-file", file, "File to write, readable for you alone, instead of standard output")
	cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", o.AllNamespaces, "All hosted clusters of all namespaces, merged")
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", o.Namespace, "Namespace of the HostedCluster")
	cmd.MarkFlagsMutuallyExclusive("all-namespaces", "namespace")
	o.Connect.AddFlags(cmd.Flags())
	connect.CompleteHostedClusters(cmd, &o.Connect, "name", &o.Namespace)
	connect.CompleteNamespaces(cmd, &o.Connect, "namespace")
	return cmd
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

// published reads the kubeconfig that the operator published for a cluster.
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
