package kubectlpackage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/fixture"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/author/render"
)

type treeOptions struct {
	cluster                         bool
	configPath, testcase, component string
}

func (o *Options) tree() *cobra.Command {
	t := treeOptions{}
	cmd := &cobra.Command{
		Use:               "tree source_path",
		ValidArgsFunction: folders,
		Short:             "Show the phases and objects of a package in its source folder",
		Example: `  kubectl package tree my-app
  kubectl package tree my-app --cluster --config-path config.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return errors.New("arguments invalid: source path empty")
			}
			if err := t.run(cmd.Context(), cmd.OutOrStdout(), args[0]); err != nil {
				return fmt.Errorf("rendering package: %w", err)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&t.cluster, "cluster", false, "Show it as a ClusterPackage")
	flags.StringVar(&t.configPath, "config-path", "", "File with the configuration to use")
	flags.StringVar(&t.testcase, "config-testcase", "", "Test case whose context to use")
	flags.StringVar(&t.component, "component", "", "Component to show")
	cmd.MarkFlagsMutuallyExclusive("config-path", "config-testcase")
	return cmd
}

func (t treeOptions) run(ctx context.Context, out io.Writer, source string) error {
	files, err := load.Folder(source)
	if err != nil {
		return fmt.Errorf("loading package from files: %w", err)
	}
	p, err := load.Load(ctx, files, t.component)
	if err != nil {
		return fmt.Errorf("loading package contents: %w", err)
	}
	c, err := t.context(p)
	if err != nil {
		return err
	}
	kind := "Package"
	if t.cluster || c.Package.Namespace == "" {
		kind, c.Package.Namespace = "ClusterPackage", ""
		if err := render.Scope(p, true); err != nil {
			return err
		}
	}
	rendered, err := fixture.Render(ctx, p, c)
	if err != nil {
		return err
	}
	template, err := rendered.Template(p, c.Package.Name)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n%s %s/%s\n", p.Manifest.Name, kind, c.Package.Namespace, c.Package.Name)
	printPhases(out, template.Phases)
	return nil
}

// context is that of the chosen test case, or else of the first, or else made up.
func (t treeOptions) context(p *load.Package) (manifests.TemplateContext, error) {
	cases := p.Manifest.Test.Template
	c := manifests.TemplateContext{Package: manifests.TemplateContextPackage{TemplateContextObjectMeta: manifests.TemplateContextObjectMeta{Name: "name", Namespace: "namespace"}}}
	switch {
	case t.testcase != "":
		i := slices.IndexFunc(cases, func(c manifests.PackageManifestTestCaseTemplate) bool { return c.Name == t.testcase })
		if i < 0 {
			return c, fmt.Errorf("getting config: test template with name %q not found", t.testcase)
		}
		c = cases[i].Context
	case len(cases) > 0:
		c = cases[0].Context
	}
	if t.configPath != "" {
		data, err := os.ReadFile(t.configPath)
		if err != nil {
			return c, fmt.Errorf("getting config: read config from file: %w", err)
		}
		raw, err := yaml.YAMLToJSON(data)
		if err != nil {
			return c, fmt.Errorf("getting config: unmarshal config from file %s: %w", t.configPath, err)
		}
		c.Config = &runtime.RawExtension{Raw: raw}
	}
	return c, nil
}

// printPhases draws phases and their objects. Each phase has the corner of a last one, as published: scripts read it.
func printPhases(out io.Writer, phases []v1alpha1.ObjectSetTemplatePhase) {
	for i, phase := range phases {
		indent := "│   "
		if i == len(phases)-1 {
			indent = "    "
		}
		fmt.Fprintf(out, "└── Phase %s\n", phase.Name)
		for j := range phase.Objects {
			obj := &phase.Objects[j].Object
			leaf := "├── "
			if j == len(phase.Objects)-1 {
				leaf = "└── "
			}
			fmt.Fprintf(out, "%s%s%s %s/%s\n", indent, leaf, obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName())
		}
	}
}
