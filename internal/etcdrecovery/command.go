package etcdrecovery

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/sidecar/etcdinit"
)

// Where the Job has the client certificate of etcd.
const (
	certificates = "/etc/etcd/tls/client"
	authority    = "/etc/etcd/tls/etcd-ca"
)

// Command is `hypershift-operator recover-etcd`.
func Command() *cobra.Command {
	cmd := &cobra.Command{Use: "recover-etcd", Short: "Replace the member of a hosted cluster's etcd that can't start any more", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(runCommand())
	return cmd
}

func runCommand() *cobra.Command {
	r := Recovery{poll: poll, patience: patience, election: election}
	files := etcdinit.TLSFiles{CA: authority + "/ca.crt", Cert: certificates + "/etcd-client.crt", Key: certificates + "/etcd-client.key"}
	var endpoint string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Replace one failing member and wait until all are healthy",
		Long: `Replace one failing member and wait until all are healthy.

When exactly one member crashes again and again, and all others are healthy, it is removed from the cluster, and its volume and its pod are
deleted: the next pod joins with the data of the others. With two failing members, or when the members can't be read from a quorum, nothing
is changed, and the command fails.`,
		Example: "  hypershift-operator recover-etcd run --namespace clusters-demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.Namespace == "" {
				return errors.New("--namespace: name the namespace of the control plane")
			}
			if endpoint == "" {
				endpoint = "https://" + service(r.Name) + ":2379"
			}
			connection, err := etcdinit.Connect([]string{endpoint}, files)
			if err != nil {
				return err
			}
			cfg, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("finding the management cluster: %w", err)
			}
			scheme := runtime.NewScheme()
			if err := clientgoscheme.AddToScheme(scheme); err != nil {
				return fmt.Errorf("building the scheme: %w", err)
			}
			if r.Client, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
				return fmt.Errorf("connecting to the management cluster: %w", err)
			}
			r.Cluster, r.Log = connection, cmd.OutOrStdout()
			return r.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Namespace, "namespace", "", "namespace of the control plane")
	f.StringVar(&r.Name, "name", "etcd", "name of the StatefulSet: etcd, or etcd-<shard>")
	f.StringVar(&endpoint, "endpoint", "", "client URL of the members that are ready; empty: that of the Service")
	f.StringVar(&files.CA, "cacert", files.CA, "certificate authority of etcd")
	f.StringVar(&files.Cert, "cert", files.Cert, "client certificate of etcd")
	f.StringVar(&files.Key, "key", files.Key, "its key")
	return cmd
}

// service is the client Service of an etcd: etcd-client, or etcd-client-<shard>.
func service(name string) string { return "etcd-client" + name[min(len("etcd"), len(name)):] }
