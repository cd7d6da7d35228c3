package etcdinit

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

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

// restorer is the program beside this one that has etcd's storage code, as its subcommand restoreCommandName.
const restorer, restoreCommandName = "control-plane-operator", "etcd-restore"

// restoreCommand hands over to the restorer: this process becomes it, with the same flags.
func restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "restore",
		Short:              "Fill an empty data directory from a snapshot; does nothing when there is data",
		Example:            "  RESTORE_URL_ETCD=https://bucket.example.com/demo.db hcp-sidecar etcd-init restore --name=$POD_NAME",
		DisableFlagParsing: true, // they are the restorer's, --help too
		SilenceUsage:       true, SilenceErrors: true,
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding %s: %w", restorer, err)
			}
			program := filepath.Join(filepath.Dir(self), restorer)
			err = syscall.Exec(program, append([]string{restorer, restoreCommandName}, args...), os.Environ())
			return fmt.Errorf("starting %s %s: %w", program, restoreCommandName, err)
		},
	}
}

func tlsFlags(f *pflag.FlagSet, files *TLSFiles) {
	f.StringVar(&files.CA, "cacert", "/etc/etcd/tls/etcd-ca/ca.crt", "CA of the members' certificates")
	f.StringVar(&files.Cert, "cert", "/etc/etcd/tls/client/etcd-client.crt", "client certificate")
	f.StringVar(&files.Key, "key", "/etc/etcd/tls/client/etcd-client.key", "key of the client certificate")
}
