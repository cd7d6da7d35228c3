package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/packages/control/operatorpackage"
)

func packageCommand(o *Options, files *fileFlags) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "package",
		Short: "Write the package operator as a package",
		Long: `Write the package operator as a package: the operator itself, and as components the connector to a hosted cluster (remote-phase) and an operator
for a hosted cluster's own packages (hosted-cluster).

Build and push it like any package. The operator's flag --package-operator-package-image then installs connectors from it, and --self-bootstrap
the operator. Packages lock their images, so --hypershift-image needs a digest.`,
		Example: `  hypershift install package --hypershift-image registry.example.com/hypershift/operator@sha256:… --output-dir package-operator
  kubectl package build package-operator --tag registry.example.com/hypershift/package-operator:1.0 --push`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := files.load(cmd.ErrOrStderr(), o); err != nil {
				return err
			}
			if err := writePackage(o.Image, dir); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "Folder of the package; it is made when it doesn't exist (required)")
	return cmd
}

// writePackage writes the package. Files that exist are replaced.
func writePackage(image, dir string) error {
	if dir == "" {
		return errors.New("--output-dir is required")
	}
	files, err := operatorpackage.Files(image)
	if err != nil {
		return fmt.Errorf("--hypershift-image: %w", err)
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("--output-dir: %w", err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil { // for everybody: there is no secret in it
			return fmt.Errorf("--output-dir: %w", err)
		}
	}
	return nil
}
