package etcdinit

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Command is `hcp-sidecar etcd-init`.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "etcd-init",
		Short: "Prepare an etcd member before etcd starts",
		Example: `  hcp-sidecar etcd-init reset-member --help
  hcp-sidecar etcd-init restore --help`,
	}
	cmd.AddCommand(resetMemberCommand(), restoreCommand())
	return cmd
}

func tlsFlags(f *pflag.FlagSet, files *TLSFiles) {
	f.StringVar(&files.CA, "cacert", "/etc/etcd/tls/etcd-ca/ca.crt", "CA of the members' certificates")
	f.StringVar(&files.Cert, "cert", "/etc/etcd/tls/client/etcd-client.crt", "client certificate")
	f.StringVar(&files.Key, "key", "/etc/etcd/tls/client/etcd-client.key", "key of the client certificate")
}
