package follow

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/contract/names"
)

// componentLabel on pods holds the name of their component.
const componentLabel = "hypershift.openshift.io/control-plane-component"

// maxPods bounds how many pods of a component are read: a component has three, and a few more while it rolls out.
const maxPods = 20

// maxLine bounds a line of a log, in bytes. Longer ones are cut in pieces.
const maxLine = 1 << 20

type logOptions struct {
	connect            connect.Flags
	cluster, namespace string
	container          string
	follow, previous   bool
	timestamps         bool
	since              time.Duration
	tail               int64
}

// Logs is "logs".
func Logs() *cobra.Command {
	o := &logOptions{namespace: connect.DefaultNamespace, tail: 100}
	cmd := &cobra.Command{
		Use:   "logs COMPONENT --cluster NAME",
		Short: "Show the logs of all pods of a control-plane component",
		Long: `Show the logs of all pods of a component of a hosted control plane; if there are several pods, each line starts with the pod's name. It shows the
container with the component's name, or the first one, unless --container names another; "all" means every container.`,
		Example: `  hypershift logs kube-apiserver --cluster demo
  hypershift logs etcd --cluster demo --since 10m --tail -1
  hypershift logs control-plane-operator --cluster demo -f`,
		Args:        cobra.ExactArgs(1),
		Annotations: map[string]string{connect.QuietNamespace: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
		ValidArgsFunction: o.complete,
	}
	fs := cmd.Flags()
	fs.StringVar(&o.cluster, "cluster", "", "Name of the hosted cluster (required)")
	fs.StringVarP(&o.namespace, "namespace", "n", o.namespace, "Namespace of the HostedCluster")
	fs.StringVarP(&o.container, "container", "c", "", "Container to show; all: every one (default: the one with the component's name, else the first)")
	fs.BoolVarP(&o.follow, "follow", "f", false, "Keep printing new output")
	fs.BoolVarP(&o.previous, "previous", "p", false, "Show the logs of the previous containers")
	fs.BoolVar(&o.timestamps, "timestamps", false, "Print the time before each line")
	fs.DurationVar(&o.since, "since", 0, "Only lines of the last period, such as 10m; 0 means all")
	fs.Int64Var(&o.tail, "tail", o.tail, "Number of newest lines per container; -1 means all")
	o.connect.AddFlags(fs)
	connect.CompleteHostedClusters(cmd, &o.connect, "cluster", &o.namespace)
	connect.CompleteNamespaces(cmd, &o.connect, "namespace")
	return cmd
}

// complete offers the components of the cluster that --cluster names.
func (o *logOptions) complete(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, err := o.connect.Client()
	if err != nil || len(args) > 0 || o.cluster == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second) // a shell that hangs on a tab is worse than no completion
	defer cancel()
	list := &hyperv1.ControlPlaneComponentList{}
	if err := c.List(ctx, list, client.InNamespace(names.ControlPlaneNamespace(o.namespace, o.cluster)), client.Limit(pageSize)); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offers []string
	for i := range list.Items {
		offers = append(offers, list.Items[i].Name)
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

// source is the log of one container.
type source struct{ pod, container string }

func (o *logOptions) run(ctx context.Context, component string, out, notes io.Writer) error {
	if o.cluster == "" {
		return errors.New("--cluster is required: name a hosted cluster; `hypershift get clusters -A` lists them")
	}
	config, err := o.connect.RESTConfig()
	if err != nil {
		return err
	}
	c, err := o.connect.Client()
	if err != nil {
		return err
	}
	if err := exists(ctx, c, o.namespace, o.cluster); err != nil {
		return err
	}
	plane := names.ControlPlaneNamespace(o.namespace, o.cluster)
	pods, err := podsOf(ctx, c, plane, component)
	if err != nil {
		return err
	}
	config.Timeout = 0 // a log that is followed has no end
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	sources := choose(pods, component, o.container)
	if len(sources) == 0 {
		return fmt.Errorf("no pod of component %s has a container %q; there are: %s", component, o.container, strings.Join(containers(pods), ", "))
	}
	w := &lines{out: out}
	var wg sync.WaitGroup
	errs := make([]error, len(sources))
	for i, s := range sources {
		wg.Go(func() { errs[i] = o.copy(ctx, clientset, plane, s, len(sources) > 1, w) })
	}
	wg.Wait()
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(failed) == len(sources) {
		return errors.Join(failed...)
	}
	for _, err := range failed { // one pod that has not started must not hide the others
		fmt.Fprintln(notes, err)
	}
	return nil
}

func podsOf(ctx context.Context, c client.Reader, plane, component string) ([]corev1.Pod, error) {
	for _, label := range []string{componentLabel, "app", "name"} {
		list := &corev1.PodList{}
		if err := c.List(ctx, list, client.InNamespace(plane), client.MatchingLabels{label: component}, client.Limit(maxPods)); err != nil {
			return nil, fmt.Errorf("listing pods of component %s: %w", component, err)
		}
		if len(list.Items) > 0 {
			slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
			return list.Items, nil
		}
	}
	return nil, exit.With(exit.NotFound, fmt.Errorf("component %s has no pods in namespace %s: `hypershift describe CLUSTER --show all` lists the components", component, plane))
}

// choose picks containers.
func choose(pods []corev1.Pod, component, container string) []source {
	var list []source
	for i := range pods {
		spec := pods[i].Spec
		switch container {
		case "all":
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				list = append(list, source{pods[i].Name, c.Name})
			}
		case "":
			name := spec.Containers[0].Name
			if slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == component }) {
				name = component
			}
			list = append(list, source{pods[i].Name, name})
		default:
			if slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), func(c corev1.Container) bool { return c.Name == container }) {
				list = append(list, source{pods[i].Name, container})
			}
		}
	}
	return list
}

func containers(pods []corev1.Pod) []string {
	var list []string
	for i := range pods {
		for _, c := range slices.Concat(pods[i].Spec.InitContainers, pods[i].Spec.Containers) {
			list = append(list, c.Name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// copy writes the log of a container, line by line.
func (o *logOptions) copy(ctx context.Context, clientset kubernetes.Interface, namespace string, s source, named bool, w *lines) error {
	options := &corev1.PodLogOptions{Container: s.container, Follow: o.follow, Previous: o.previous, Timestamps: o.timestamps}
	if o.since > 0 {
		options.SinceSeconds = ptr.To(max(1, int64(o.since/time.Second)))
	}
	if o.tail >= 0 {
		options.TailLines = ptr.To(o.tail)
	}
	stream, err := clientset.CoreV1().Pods(namespace).GetLogs(s.pod, options).Stream(ctx)
	if err != nil {
		return fmt.Errorf("reading the log of Pod %s/%s, container %s: %w", namespace, s.pod, s.container, err)
	}
	defer stream.Close()
	prefix := ""
	if named {
		prefix = "[" + s.pod + "/" + s.container + "] "
	}
	reader := bufio.NewReaderSize(stream, maxLine)
	for {
		line, err := reader.ReadSlice('\n')
		if len(line) > 0 {
			if err := w.write(prefix, line); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF), ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("reading the log of Pod %s/%s, container %s: %w", namespace, s.pod, s.container, err)
		}
	}
}

// lines is a writer for several sources that leaves lines whole.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) write(prefix string, line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := prefix + string(line)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(l.out, text)
	return err
}
