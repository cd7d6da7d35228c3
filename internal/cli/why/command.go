// Package why is the command "why": one root cause for what is wrong with an object, with the evidence and what to do.
package why

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/kubeconfig"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/why"
	"hcp.internal/platform/internal/why/observe"
)

// lookAgain is the pause between two looks of --watch.
const lookAgain = 2 * time.Second

// kinds are what a user may write, and the kind that is meant.
var kinds = map[string]string{
	"hostedcluster": "HostedCluster", "hostedclusters": "HostedCluster", "hc": "HostedCluster",
	"nodepool": "NodePool", "nodepools": "NodePool", "np": "NodePool",
	"machine": "Machine", "machines": "Machine",
	"component": "ControlPlaneComponent", "components": "ControlPlaneComponent", "controlplanecomponent": "ControlPlaneComponent", "cpc": "ControlPlaneComponent",
	"hostedcontrolplane": "HostedControlPlane", "hcp": "HostedControlPlane",
	"package": "Package", "packages": "Package", "pkg": "Package",
	"objectdeployment": "ObjectDeployment", "objectdeployments": "ObjectDeployment",
	"objectset": "ObjectSet", "objectsets": "ObjectSet",
	"clusterpackage": "ClusterPackage", "clusterpackages": "ClusterPackage", "clpkg": "ClusterPackage",
	"clusterobjectdeployment": "ClusterObjectDeployment", "clusterobjectdeployments": "ClusterObjectDeployment",
	"hostedclusterpackage": "HostedClusterPackage", "hostedclusterpackages": "HostedClusterPackage", "hcpkg": "HostedClusterPackage",
}

// shown are the words that completion offers.
var shown = []string{"hostedcluster", "nodepool", "machine", "component", "package", "objectdeployment", "clusterpackage", "clusterobjectdeployment", "hostedclusterpackage"}

type options struct {
	connect            connect.Flags
	namespace, cluster string
	format             output.Format
	watch              bool
	hosted             bool
	every              time.Duration // how often --watch looks; shorter in tests
}

// Command is "why".
func Command() *cobra.Command {
	o := &options{hosted: true}
	cmd := &cobra.Command{
		Use:   "why KIND/NAME",
		Short: "Say why an object is unhealthy, stuck, held or not deleted",
		Long: `Find one root cause: why something isn't available, doesn't progress, isn't deleted, or why nothing will happen. The first line names the
cause. Below it are the time since when this is so, the evidence that leads to it, what to do, and whether it resolves itself.

KIND is one of hostedcluster (hc), nodepool (np), machine, component, package, objectdeployment, clusterpackage,
clusterobjectdeployment, hostedclusterpackage (hcpkg). The command writes nothing.
docs/why.md describes each rule that an answer names.

Exit codes: 0 there is an answer; 4 the object doesn't exist.`,
		Example: `  hypershift why hostedcluster/demo
  hypershift why np/demo-workers -n clusters --watch
  hypershift why component/etcd --cluster demo
  hypershift why machine/demo-workers-x7k2p --cluster demo -o json
  hypershift why hostedclusterpackage/addon`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return errors.New("say what to ask about: hypershift why KIND/NAME, such as hostedcluster/demo")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	o.addPlaceFlags(cmd)
	fs := cmd.Flags()
	fs.BoolVarP(&o.watch, "watch", "w", false, "Keep running, and print the answer whenever it changes")
	fs.BoolVar(&o.hosted, "hosted", true, "Also look into the hosted cluster, with its published kubeconfig")
	o.format.AddFlag(cmd)
	cmd.ValidArgsFunction = o.complete
	return cmd
}

// addPlaceFlags declares the flags that say where an object is.
func (o *options) addPlaceFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&o.namespace, "namespace", "n", "", "Namespace of the object, or with --cluster that of the HostedCluster (default: that of the kubeconfig's context, or clusters)")
	fs.StringVar(&o.cluster, "cluster", "", "HostedCluster whose machine, component or package is meant: it is looked for in the namespace of its control plane")
	o.connect.AddFlags(fs)
	connect.CompleteNamespaces(cmd, &o.connect, "namespace")
	connect.CompleteHostedClusters(cmd, &o.connect, "cluster", &o.namespace)
}

// Target reads "KIND/NAME" or "KIND NAME".
func Target(args []string) (why.Object, error) {
	var name string
	word := args[0]
	if len(args) == 2 {
		name = args[1]
	} else {
		word, name, _ = strings.Cut(args[0], "/")
	}
	kind, ok := kinds[strings.ToLower(word)]
	switch {
	case !ok:
		return why.Object{}, fmt.Errorf("unknown kind %q: use one of %s, as in hostedcluster/demo", word, strings.Join(shown, ", "))
	case name == "" || strings.Contains(name, "/"):
		return why.Object{}, fmt.Errorf("the name is missing: write %s/NAME", strings.ToLower(word))
	}
	return why.Object{Kind: kind, Name: name}, nil
}

// place says in which namespace the object is.
func (o *options) place(of *why.Object) error {
	ns := o.namespace
	if ns == "" {
		var err error
		if ns, err = o.connect.Namespace(); err != nil {
			return err
		}
		if ns == "default" && (o.cluster != "" || of.Kind == "HostedCluster" || of.Kind == "NodePool") {
			ns = connect.DefaultNamespace
		}
	}
	switch of.Kind {
	case "HostedClusterPackage", "ClusterPackage", "ClusterObjectDeployment":
		return nil
	case "HostedCluster", "NodePool":
		if o.cluster != "" {
			return errors.New("--cluster is for what is in the namespace of a control plane: machine, component, package. Leave it out")
		}
	default:
		if o.cluster != "" {
			ns = names.ControlPlaneNamespace(ns, o.cluster)
		}
	}
	of.Namespace = ns
	return nil
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	of, err := Target(args)
	if err != nil {
		return err
	}
	if err := o.place(&of); err != nil {
		return err
	}
	c, err := o.connect.Client()
	if err != nil {
		return err
	}
	observer := observe.Observer{Client: c}
	if o.hosted {
		observer.Hosted = hostedReader(c)
	}
	return o.follow(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), func(ctx context.Context) (why.Answer, error) {
		return look(ctx, observer, of)
	})
}

// follow prints the answer, with --watch whenever it changes. What is no answer is said on the side.
func (o *options) follow(ctx context.Context, out, said io.Writer, look func(context.Context) (why.Answer, error)) error {
	var last why.Answer
	patience := progress.NewPatience(said, nil)
	for {
		answer, err := look(ctx)
		switch bad := patience.Bear(ctx, err); {
		case bad != nil:
			return bad
		case err == nil && !reflect.DeepEqual(answer, last):
			if err := o.print(out, answer); err != nil {
				return err
			}
			last = answer
		}
		if !o.watch {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(cmp.Or(o.every, lookAgain)):
		}
	}
}

// look answers once.
func look(ctx context.Context, observer observe.Observer, of why.Object) (why.Answer, error) {
	snap, err := observer.Snapshot(ctx, of)
	if apierrors.IsNotFound(err) {
		return why.Answer{}, exit.With(exit.NotFound, fmt.Errorf("there is no %s: check the name, and the namespace with -n", of))
	}
	if err != nil {
		return why.Answer{}, err
	}
	answer := why.Explain(snap, of)
	if answer.Rule == "not-found" {
		return answer, exit.With(exit.NotFound, gone(snap, of))
	}
	return answer, nil
}

// gone says what is known of an object that isn't there any more. Of a Machine, why those of its pool were replaced.
func gone(snap *why.Snapshot, of why.Object) error {
	text := fmt.Sprintf("there is no %s: check the name, and the namespace with -n", of)
	if of.Kind != "Machine" {
		return errors.New(text)
	}
	for i := range snap.NodePools {
		p := &snap.NodePools[i]
		if !strings.HasPrefix(of.Name, p.Name+"-") {
			continue
		}
		for _, note := range why.Explain(snap, why.Object{Kind: "NodePool", Namespace: p.Namespace, Name: p.Name}).Notes {
			text += "\n  " + note
		}
	}
	return errors.New(text)
}

// hostedReader reaches hosted clusters with the kubeconfigs that are published for people.
func hostedReader(c client.Client) func(context.Context, *hyperv1.HostedCluster) (client.Reader, error) {
	return func(ctx context.Context, hc *hyperv1.HostedCluster) (client.Reader, error) {
		raw, err := kubeconfig.Kubeconfig(ctx, c, kubeconfig.Options{Name: hc.Name, Namespace: hc.Namespace}, nil)
		if err != nil {
			return nil, err
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(raw)
		if err != nil {
			return nil, errors.New("its kubeconfig can't be used")
		}
		config.Timeout, config.QPS, config.UserAgent = lookAgain, -1, "hypershift-cli"
		return client.New(config, client.Options{Scheme: connect.Scheme()})
	}
}

func (o *options) print(w io.Writer, a why.Answer) error {
	if o.format != output.Text {
		return o.format.Value(w, a)
	}
	return Print(w, a, time.Now())
}

// Print writes an answer for people.
func Print(w io.Writer, a why.Answer, now time.Time) error {
	var b strings.Builder
	head := a.Object.String()
	if a.Deleting {
		head += ", being deleted"
	}
	fmt.Fprintf(&b, "%s: %s\n", head, a.Cause)
	if a.Since != nil {
		fmt.Fprintf(&b, "  since  %s (%s)\n", a.Since.UTC().Format(time.RFC3339), now.Sub(a.Since.Time).Round(time.Second))
	}
	for i, l := range a.Chain {
		label := "seen"
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(&b, "  %-5s  %s %s: %s\n", label, l.Object, l.Field, l.Text)
	}
	if a.Do != "" {
		fmt.Fprintf(&b, "  do     %s\n", a.Do)
	}
	if a.State != why.Well {
		fmt.Fprintf(&b, "  heals  %s\n", map[why.State]string{why.Waiting: "by itself", why.Held: "no: someone paused or held it, or an order or budget requires it", why.Broken: "no: someone has to act"}[a.State])
	}
	if a.Rule != "" {
		fmt.Fprintf(&b, "  rule   %s, see docs/why.md\n", a.Rule)
	}
	for _, n := range a.Notes {
		fmt.Fprintf(&b, "  note   %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
