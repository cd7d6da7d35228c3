package endpointresolver

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/sidecar/kubeapi"
	"hcp.internal/platform/internal/sidecar/tlsserver"
)

// Command is `hcp-sidecar endpoint-resolver`.
func Command() *cobra.Command {
	s := tlsserver.Server{Addr: ":9444"}
	cmd := &cobra.Command{
		Use:   "endpoint-resolver",
		Short: "Tell the metrics proxy where the control plane's pods are",
		Example: `  MY_NAMESPACE=clusters-demo hcp-sidecar endpoint-resolver --tls-cert-file /etc/endpoint-resolver/serving-cert/tls.crt \
    --tls-key-file /etc/endpoint-resolver/serving-cert/tls.key`,
		Args:         cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			namespace := os.Getenv("MY_NAMESPACE")
			if namespace == "" {
				return errors.New("MY_NAMESPACE is empty: set it to the namespace of the control plane")
			}
			api, err := kubeapi.FromKubeconfig("")
			if err != nil {
				return err
			}
			s.Handler = Handler(api, namespace)
			return s.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.Addr, "addr", s.Addr, "address to listen on")
	f.StringVar(&s.CertFile, "tls-cert-file", "", "file with the serving certificate, in PEM; read again when it changes (required)")
	f.StringVar(&s.KeyFile, "tls-key-file", "", "file with its key, in PEM (required)")
	return cmd
}
