package metricsproxy

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/sidecar/tlsserver"
)

// Command is `hcp-sidecar metrics-proxy`.
func Command() *cobra.Command {
	s := tlsserver.Server{Addr: ":9443"}
	p := &proxy{}
	cmd := &cobra.Command{
		Use:   "metrics-proxy",
		Short: "Serve the metrics of a control plane to its hosted cluster",
		Example: `  hcp-sidecar metrics-proxy --tls-cert-file /etc/metrics-proxy/serving-cert/tls.crt --tls-key-file /etc/metrics-proxy/serving-cert/tls.key \
    --client-ca-file /etc/metrics-proxy/client-ca/ca.crt --config-file /etc/metrics-proxy/config/config.yaml --metrics-set Telemetry`,
		Args:         cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.ClientCAFile == "" || p.configFile == "" {
				return errors.New("--client-ca-file and --config-file must be given")
			}
			p.log = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
			s.Handler = p.handler()
			return s.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.Addr, "addr", s.Addr, "address to listen on")
	f.StringVar(&s.CertFile, "tls-cert-file", "", "file with the serving certificate, in PEM; read again when it changes (required)")
	f.StringVar(&s.KeyFile, "tls-key-file", "", "file with its key, in PEM (required)")
	f.StringVar(&s.ClientCAFile, "client-ca-file", "", "file with the authorities of clients, in PEM; read again when it changes (required)")
	f.StringVar(&p.configFile, "config-file", "", "file that says how each component is scraped; read for each scrape (required)")
	f.StringVar(&p.set, "metrics-set", "All", "which metrics are passed on: Telemetry keeps a short list of each component, All and SRE everything")
	return cmd
}
