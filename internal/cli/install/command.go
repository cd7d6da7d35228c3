package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/cli/outputfile"
)

// Command is `hypershift install` with its subcommand render.
func Command() *cobra.Command {
	o := NewOptions()
	files := &fileFlags{}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the HyperShift operator and its APIs into a management cluster",
		Long: `Install the HyperShift operator and its APIs into a management cluster.

You can run it again at any time, with the same or a newer operator image: what is up to date is left alone.
Hosted clusters keep running meanwhile.`,
		Example: `  # Install and wait until the operator runs
  hypershift install --hypershift-image registry.example.com/hypershift/operator:1.0 --wait-until-available

  # Only the APIs, for an operator that runs on your machine
  hypershift install --install-scope crds

  # Look first, apply with your own tools
  hypershift install render --hypershift-image registry.example.com/hypershift/operator:1.0 > install.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := files.load(cmd.ErrOrStderr(), &o); err != nil {
				return err
			}
			return Run(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	addFlags(cmd.PersistentFlags(), &o, files)
	o.Connect.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.Scope, "install-scope", o.Scope, "What to install: all, crds or resources")
	cmd.Flags().BoolVar(&o.WaitAvailable, "wait-until-available", o.WaitAvailable, "Wait until the operator's Deployment has rolled out")
	cmd.Flags().BoolVar(&o.WaitCRDs, "wait-until-crds-established", o.WaitCRDs, "Wait until the API server serves the CRDs")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", o.Timeout, "How long the installation may take; 0 means no limit")
	complete(cmd, "install-scope", ScopeAll, ScopeCRDs, ScopeResources)
	complete(cmd, "image-pull-policy", string(corev1.PullAlways), string(corev1.PullIfNotPresent), string(corev1.PullNever))
	complete(cmd, "metrics-set", "Telemetry", "SRE", "All")
	complete(cmd, "platform-monitoring", MonitorNone, MonitorOperator, MonitorAll)
	complete(cmd, "external-dns-provider", dnsAWS, dnsAzure, dnsGoogle)
	complete(cmd, "limit-crd-install", limitable...)
	complete(cmd, "private-capi-types", CAPIAuto, CAPIPrivate, CAPIStandard)
	connect.CompleteNamespaces(cmd, &o.Connect, "namespace")
	cmd.AddCommand(renderCommand(&o, files), helmCommand(&o, files), packageCommand(&o, files), prometheusCommand(&o, files))
	return cmd
}

func renderCommand(o *Options, files *fileFlags) *cobra.Command {
	r := RenderOptions{Format: output.YAML}
	var outputFile string
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Print what install would apply",
		Example: `  hypershift install render --hypershift-image registry.example.com/hypershift/operator:1.0
  hypershift install render --outputs crds --format json --output-file crds.json
  hypershift install render --template --hypershift-image registry.example.com/hypershift/operator:1.0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.Template && cmd.Flags().Changed("outputs") {
				return errors.New("--template always holds everything: leave out --outputs")
			}
			if err := files.load(cmd.ErrOrStderr(), o); err != nil {
				return err
			}
			access := outputfile.AsBefore
			if r.Sensitive {
				access = outputfile.Private
			}
			return toFile(outputFile, access, cmd.OutOrStdout(), func(w io.Writer) error { return Render(*o, r, w) })
		},
	}
	r.Format.AddNamedFlag(cmd, "format", "Format of the output: yaml or json")
	cmd.Flags().StringVar(&o.Scope, "outputs", o.Scope, "What to print: all, crds or resources")
	cmd.Flags().BoolVar(&r.Template, "template", false, "Print an OpenShift Template with parameters for image, namespace and replicas")
	cmd.Flags().BoolVar(&r.Sensitive, "render-sensitive", false, "Also print the data of Secrets")
	cmd.Flags().StringVar(&outputFile, "output-file", "", "File to write instead of standard output")
	complete(cmd, "outputs", ScopeAll, ScopeCRDs, ScopeResources)
	return cmd
}

// toFile calls write with out, or with what becomes the content of a file once all of it is there: what is refused changes no file.
func toFile(path string, access outputfile.Access, out io.Writer, write func(io.Writer) error) error {
	if path == "" {
		return write(out)
	}
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return err
	}
	if err := outputfile.Write(path, content.Bytes(), access); err != nil {
		return fmt.Errorf("--output-file: %w", err)
	}
	return nil
}

func complete(cmd *cobra.Command, flag string, values ...string) {
	// Only fails for a flag that isn't there.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
