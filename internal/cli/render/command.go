// Package render is the command `hypershift render`: what the operators would make, without a cluster.
package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/controlplane"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift"
	"hcp.internal/platform/internal/controlplane/openshift/karpenter"
	"hcp.internal/platform/internal/hostedcluster"
	"hcp.internal/platform/internal/hostedcontrolplane"
)

// Operators whose components are rendered.
const (
	controlPlaneOperator = "control-plane-operator"
	hypershiftOperator   = "hypershift-operator"
	karpenterOperator    = "karpenter-operator"
)

// options are the flags of `render components`.
type options struct {
	file            string
	release         string
	userRelease     string
	placeholders    bool
	objects         []string
	infra           string
	capabilities    string
	nativeSidecars  bool
	uid             int64
	restricted      bool
	overrides       string
	mirrors         string
	metricsSet      string
	components      []string
	all             bool
	operator        string
	noSigning       bool
	noDefaults      bool
	withStatus      bool
	renderSensitive bool
	directory       string
	overwrite       bool
	keepGoing       bool
	format          output.Format
}

// Command is `hypershift render`.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "render",
		Short:   "Show what would be created, without a cluster",
		Example: `  hypershift render components -f hcp.yaml --release-metadata release.json --output-dir out`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(componentsCommand())
	return cmd
}

func componentsCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "components",
		Short: "Show every object of a control plane for a HostedControlPlane or a HostedCluster",
		Long: `Show every object of a control plane for a HostedControlPlane, as the operators would apply it, or for the one that a HostedCluster becomes.

The command reads only files: no cluster, no registry, and with --no-signing no clock, so the same input gives the same bytes. With --output-dir, each object
is written to a file <component>/<kind>_<name>.yaml; standard error has a line for each component with the number of its objects.`,
		Example: `  hypershift render components -f hcp.yaml --release-metadata release.json --no-signing --output-dir out
  hypershift render components -f hcp.yaml --release-metadata release.json --component kube-apiserver -o yaml
  hypershift create cluster none --name demo --pull-secret ps.json --render | \
    hypershift render components -f - --release-metadata release.json --all --placeholder-images --no-signing -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd) },
	}
	o.addFlags(cmd.Flags())
	o.format.AddFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("output-dir", "output")
	for _, name := range []string{"filename", "release-metadata"} {
		_ = cmd.MarkFlagRequired(name) // only fails for a flag that isn't there
	}
	_ = cmd.RegisterFlagCompletionFunc("operator", cobra.FixedCompletions([]string{controlPlaneOperator, hypershiftOperator, karpenterOperator}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("component", cobra.FixedCompletions(names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *options) addFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.file, "filename", "f", "", "HostedControlPlane, or HostedCluster with its NodePools, as YAML or JSON; - is standard input")
	f.StringVar(&o.release, "release-metadata", "", "Release of the control plane: an image-references ImageStream, or JSON {version, image, kubernetesVersion, componentVersions, images: {tag: pull spec}}")
	f.StringVar(&o.userRelease, "user-release-metadata", "", "Release of spec.releaseImage, where it is another than that of the control plane")
	f.BoolVar(&o.placeholders, "placeholder-images", false, "Use a tag that the release lacks as its own image reference, instead of failing")
	f.StringArrayVar(&o.objects, "objects", nil, "File or folder of objects that exist in the namespace, for example Secrets and ready ControlPlaneComponents (repeatable)")
	f.StringVar(&o.infra, "infra-status", "", "File with the published hosts and ports: {apiHost, apiPort, advertiseAddress, konnectivityHost, konnectivityPort, oauthHost, oauthPort}")
	f.StringVar(&o.capabilities, "management-capabilities", "none", "Kinds that the management cluster serves beyond Kubernetes: all, none, or names as Route,ServiceMonitor")
	f.BoolVar(&o.nativeSidecars, "native-sidecars", false, "The management cluster supports init containers with restartPolicy Always (Kubernetes 1.29 and newer)")
	f.Int64Var(&o.uid, "default-security-context-uid", 0, "UID of pods if the management cluster doesn't assign one; 0 together with SecurityContextConstraints among the capabilities means none")
	f.BoolVar(&o.restricted, "restricted-pods", false, "Namespaces admit only pods of the restricted Pod Security Standard, as on a management cluster that isn't OpenShift; matters for OpenShift payloads")
	f.StringVar(&o.overrides, "registry-overrides", "", "Registries to replace in image references: source=destination,…")
	f.StringVar(&o.mirrors, "image-mirrors", "", "Mirrors of the management cluster, as handed on to operators: source=mirror,…")
	f.StringVar(&o.metricsSet, "metrics-set", "", "Metrics that are scraped: Telemetry, SRE or All (default Telemetry)")
	f.StringArrayVar(&o.components, "component", nil, "Render only this component (repeatable)")
	f.BoolVar(&o.all, "all", false, "Also render components that aren't wanted or wait for others, and monitors before the first rollout")
	f.StringVar(&o.operator, "operator", controlPlaneOperator, "Operator whose components to render: control-plane-operator, hypershift-operator, or karpenter-operator of an OpenShift payload")
	f.BoolVar(&o.noSigning, "no-signing", false, "Leave generated certificates out, instead of creating a CA")
	f.BoolVar(&o.noDefaults, "no-defaults", false, "Take the object as it is, without the API's defaults and validation")
	f.BoolVar(&o.withStatus, "with-status", false, "Also render the ControlPlaneComponent of each component")
	f.BoolVar(&o.renderSensitive, "render-sensitive", false, "Print the data of Secrets; files of --output-dir (mode 0600) always have it")
	f.StringVar(&o.directory, "output-dir", "", "Folder for one file per object; new or empty")
	f.BoolVar(&o.overwrite, "overwrite", false, "Replace existing files in --output-dir")
	f.BoolVar(&o.keepGoing, "keep-going", false, "Continue after a component fails; the exit code reports that one did")
}

func (o *options) run(ctx context.Context, cmd *cobra.Command) error {
	loaded, err := o.load(cmd.InOrStdin())
	if err != nil {
		return err
	}
	list, err := o.list(loaded)
	if err != nil {
		return err
	}
	var sink sink = &stream{out: cmd.OutOrStdout(), format: o.format, sensitive: o.renderSensitive}
	if o.directory != "" {
		if sink, err = newFolder(o.directory, o.overwrite); err != nil {
			return err
		}
	}
	errOut := cmd.ErrOrStderr()
	var failures []error
	in := hostedcontrolplane.PreviewInput{WorkloadContext: o.context(loaded), Components: list, Objects: loaded.objects, All: o.all, Now: time.Now()}
	in.Each = func(p component.Plan, err error) error {
		if err == nil {
			err = o.write(sink, p, errOut)
		}
		if err == nil {
			return nil
		}
		err = fmt.Errorf("component %s: %w", p.Component, err)
		if !o.keepGoing {
			return err
		}
		fmt.Fprintln(errOut, err)
		failures = append(failures, err)
		return nil
	}
	if err := hostedcontrolplane.Preview(ctx, in); err != nil {
		return err
	}
	if err := sink.close(); err != nil {
		return err
	}
	if len(failures) > 0 {
		return fmt.Errorf("%d of %d components failed, the first: %w", len(failures), len(list), failures[0])
	}
	return nil
}

func (o *options) write(to sink, p component.Plan, errOut io.Writer) error {
	objs := p.Objects
	report := p.Preview()
	if o.withStatus && report != nil {
		objs = append(objs, report)
	}
	for _, obj := range objs {
		if err := to.put(p.Component, obj, obj == report); err != nil {
			return err
		}
	}
	if p.Left != "" {
		_, err := fmt.Fprintf(errOut, "%s: nothing, %s\n", p.Component, p.Left)
		return err
	}
	_, err := fmt.Fprintf(errOut, "%s: %d objects\n", p.Component, len(objs))
	return err
}

// list are the components that were asked for.
func (o *options) list(l loaded) ([]component.Component, error) {
	var list []component.Component
	switch o.operator {
	case controlPlaneOperator:
		list = controlplane.ComponentsOf(l.hcp, l.release)
	case hypershiftOperator:
		var err error
		if list, err = hostedcluster.PreviewComponents(l.hcp, l.release); err != nil {
			return nil, err
		}
	case karpenterOperator:
		if l.release.Kubernetes {
			return nil, fmt.Errorf("--operator %s: only OpenShift payloads have an operator of Karpenter, and %s is a release of Kubernetes: leave the flag out", karpenterOperator, l.release.Version)
		}
		list = []component.Component{karpenter.NewComponent()}
	default:
		return nil, fmt.Errorf("--operator %q: use %s, %s or %s", o.operator, controlPlaneOperator, hypershiftOperator, karpenterOperator)
	}
	if len(o.components) == 0 {
		return list, nil
	}
	var chosen []component.Component
	for _, name := range o.components {
		found := false
		for _, c := range list {
			if c.Name() == name {
				chosen, found = append(chosen, c), true
			}
		}
		if !found {
			return nil, fmt.Errorf("--component %s: %s has no such component; it has %v", name, o.operator, namesOf(list))
		}
	}
	return chosen, nil
}

func namesOf(list []component.Component) []string {
	var all []string
	for _, c := range list {
		all = append(all, c.Name())
	}
	return all
}

func names() []string {
	all := append(namesOf(controlplane.Components()), namesOf(openshift.Components())...)
	slices.Sort(all)
	return slices.Compact(all)
}

// errNotEmpty is for a folder that has something in it.
var errNotEmpty = errors.New("is not empty: give a new folder, or --overwrite")
