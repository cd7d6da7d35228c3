package kmsplugin

import (
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"hcp.internal/platform/internal/encryption"
)

// Command is `control-plane-operator kms-plugin`.
func Command() *cobra.Command {
	p := &Plugin{Keys: encryption.PluginKeyDir, Sockets: encryption.PluginSocketDir, Interval: 2 * time.Second}
	cmd := &cobra.Command{
		Use:     "kms-plugin",
		Short:   "Hold encryption keys for kube-apiserver, with the KMS v2 protocol",
		Example: "  control-plane-operator kms-plugin --keys /etc/kms --sockets /var/run/kms",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			debug.FreeOSMemory() // what starting up needed is not needed again
			p.Log = klog.Background().WithName("kms-plugin")
			return p.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&p.Keys, "keys", p.Keys, "folder with a file NAME.key of 32 bytes for each key; those that come later are served, too")
	cmd.Flags().StringVar(&p.Sockets, "sockets", p.Sockets, "folder in which each key is served on a socket NAME.sock")
	cmd.Flags().DurationVar(&p.Interval, "interval", p.Interval, "how often to look for new keys")
	return cmd
}
