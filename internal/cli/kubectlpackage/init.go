package kubectlpackage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
)

// skeleton are the files of a new package; %[1]s is its name.
var skeleton = map[string]string{
	"manifest.yaml": `apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata:
  name: %[1]s
spec:
  scopes:
  - Namespaced
  phases:
  - name: deploy
  availabilityProbes:
  - selector:
      kind:
        group: apps
        kind: Deployment
    probes:
    - condition:
        type: Available
        status: "True"
    - fieldsEqual:
        fieldA: .status.updatedReplicas
        fieldB: .status.replicas
  config:
    openAPIV3Schema:
      type: object
      properties:
        image:
          type: string
          default: registry.example.com/%[1]s:latest
        replicas:
          type: integer
          minimum: 0
          default: 1
test:
  template:
  - name: defaults
    context:
      package:
        metadata:
          name: %[1]s
          namespace: default
`,
	"deployment.yaml.gotmpl": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: "{{ .package.metadata.name }}"
  annotations:
    package-operator.run/phase: deploy
spec:
  replicas: {{ .config.replicas }}
  selector:
    matchLabels:
      app: "{{ .package.metadata.name }}"
  template:
    metadata:
      labels:
        app: "{{ .package.metadata.name }}"
    spec:
      containers:
      - name: %[1]s
        image: "{{ .config.image }}"
`,
}

// initialize is "init", a package to begin with.
func (o *Options) initialize() *cobra.Command {
	var packageName string
	cmd := &cobra.Command{
		Use:               "init path",
		ValidArgsFunction: folders,
		Short:             "Create the source folder of a new package",
		Example:           "  kubectl package init my-app",
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return errors.New("arguments invalid: path empty")
			}
			if packageName == "" {
				packageName = filepath.Base(filepath.Clean(args[0]))
			}
			if problems := validation.IsDNS1123Label(packageName); len(problems) > 0 {
				return fmt.Errorf("arguments invalid: name %q: %s; give another with --name", packageName, problems[0])
			}
			if exists(filepath.Join(args[0], "manifest.yaml")) || exists(filepath.Join(args[0], "manifest.yml")) {
				return fmt.Errorf("package folder already exists: %s", args[0])
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil { // source, for others to read
				return fmt.Errorf("making the package folder: %w", err)
			}
			for file, text := range skeleton {
				if err := os.WriteFile(filepath.Join(args[0], file), fmt.Appendf(nil, text, packageName), 0o644); err != nil {
					return fmt.Errorf("writing %s: %w", file, err)
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Package %q initialized in %s.\n", packageName, args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&packageName, "name", "", "Name of the package (default: that of the folder)")
	return cmd
}
