package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// defaultChartImage is the value image of a chart when nobody names one: where the published tool's chart has the operator.
const defaultChartImage = "quay.io/hypershift/hypershift-operator:latest"

func helmCommand(o *Options, files *fileFlags) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "helm",
		Short: "Write a Helm chart of what install would apply",
		Long: `Write a Helm chart of what install would apply.

The chart's values.yaml explains each value: images, pull secrets, replicas, resources, where Pods run, platforms, registry overrides, monitoring, and the package
operator. Flags of this command set the defaults of the values, and fix everything that has no value; by default, a chart has two Pods of each operator. The chart's
namespace is that of the Helm release. Helm creates it if you tell it to (helm install --create-namespace); label it
pod-security.kubernetes.io/enforce=restricted. Without --hypershift-image, the value image is  ` + defaultChartImage + `: set it to your own when you
install the chart.

Helm installs the definitions in the folder crds once, and never upgrades or removes them. A Job of the chart brings them up to date before each upgrade,
with the checks that hypershift install makes, and hypershift uninstall removes them. helm test asks whether the operator is at work.`,
		Example: `  hypershift install helm --hypershift-image registry.example.com/hypershift/operator:1.0 --output-dir chart
  helm install hypershift chart --namespace hypershift --create-namespace
  helm test hypershift --namespace hypershift`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := files.load(cmd.ErrOrStderr(), o); err != nil {
				return err
			}
			if o.Image == "" {
				o.Image = defaultChartImage
				fmt.Fprintf(cmd.ErrOrStderr(), "the chart's value image is %s: name the image that you built by --hypershift-image, or when you install the chart\n", o.Image)
			}
			if err := writeChart(*o, dir); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "Folder of the chart; it is made when it doesn't exist (required)")
	return cmd
}

// writeChart writes a chart. Files that exist are replaced.
func writeChart(o Options, dir string) error {
	if dir == "" {
		return errors.New("--output-dir is required")
	}
	if err := o.Validate(); err != nil {
		return err
	}
	files, err := Chart(o)
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("--output-dir: %w", err)
		}
		// Only for the user: it may hold a pull secret.
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("--output-dir: %w", err)
		}
	}
	return nil
}
