package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/read"
)

// pageSize bounds one answer of the API server, and maxEvents what is read of a namespace.
const (
	pageSize  = 500
	maxEvents = 5000
)

// eventTypes are all that there are.
var eventTypes = []string{corev1.EventTypeWarning, corev1.EventTypeNormal}

// Event is one event as it is printed.
type Event struct {
	Time    time.Time `json:"time"` // the last time that it was seen
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Object  string    `json:"object"` // kind/name
	Message string    `json:"message"`
	Count   int32     `json:"count,omitempty"`
}

type eventOptions struct {
	connect         connect.Flags
	name, namespace string
	types           []string
	since           time.Duration
	limit           int
	format          output.Format
}

// Events is "events".
func Events() *cobra.Command {
	o := &eventOptions{namespace: connect.DefaultNamespace, limit: 50}
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show the events of a hosted cluster, its NodePools and its control plane, the newest last",
		Example: `  hypershift events demo
  hypershift events demo --types Warning --since 1h
  hypershift events demo --limit 0 -o json`,
		Args:        cobra.NoArgs,
		Annotations: map[string]string{connect.QuietNamespace: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.connect.Client()
			if err != nil {
				return err
			}
			list, err := o.events(cmd.Context(), c, time.Now())
			if err != nil {
				return err
			}
			if o.format != output.Text {
				return o.format.Value(cmd.OutOrStdout(), list)
			}
			if len(list) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no events; the API server forgets them after an hour")
				return nil
			}
			rows := [][]string{{"AGE", "TYPE", "REASON", "OBJECT", "MESSAGE"}}
			for _, e := range list {
				text := clip.Line(e.Message)
				if e.Count > 1 {
					text += fmt.Sprintf(" (x%d)", e.Count)
				}
				rows = append(rows, []string{duration.HumanDuration(time.Since(e.Time)), e.Type, e.Reason, e.Object, text})
			}
			return output.Table(cmd.OutOrStdout(), rows)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.name, "name", "", "Name of the hosted cluster (required)")
	fs.StringVarP(&o.namespace, "namespace", "n", o.namespace, "Namespace of the HostedCluster")
	fs.StringSliceVar(&o.types, "types", nil, "Only events of these types, such as Warning or Normal,Warning")
	fs.DurationVar(&o.since, "since", 0, "Only events of the last period, such as 30m; 0 means all")
	fs.IntVar(&o.limit, "limit", o.limit, "Show at most this many events, the newest; 0 means no limit")
	o.connect.AddFlags(fs)
	o.format.AddFlag(cmd)
	connect.CompleteHostedClusters(cmd, &o.connect, "name", &o.namespace)
	connect.CompleteNamespaces(cmd, &o.connect, "namespace")
	_ = cmd.RegisterFlagCompletionFunc("types", cobra.FixedCompletions(eventTypes, cobra.ShellCompDirectiveNoFileComp)) // only fails for a flag that isn't there
	return cmd
}

func (o *eventOptions) events(ctx context.Context, c client.Reader, now time.Time) ([]Event, error) {
	if o.name == "" {
		return nil, errors.New("--name is required: name a hosted cluster; `hypershift get clusters -A` lists them")
	}
	if slices.ContainsFunc(o.types, func(t string) bool { return !slices.Contains(eventTypes, t) }) {
		return nil, fmt.Errorf("--types %s: must be of %s, with commas between them", strings.Join(o.types, ","), strings.Join(eventTypes, " and "))
	}
	if err := exists(ctx, c, o.namespace, o.name); err != nil {
		return nil, err
	}
	of := map[string]bool{"HostedCluster/" + o.name: true}
	pools := &hyperv1.NodePoolList{}
	for err := range read.Pages(ctx, c, pools, pageSize, client.InNamespace(o.namespace)) {
		if err != nil {
			return nil, fmt.Errorf("listing NodePools of namespace %s: %w", o.namespace, err)
		}
		for i := range pools.Items {
			if pools.Items[i].Spec.ClusterName == o.name {
				of["NodePool/"+pools.Items[i].Name] = true
			}
		}
	}
	list := []Event{} // not null
	for object := range of {
		_, name, _ := strings.Cut(object, "/")
		// One of a fleet has little of the events of its namespace.
		if err := o.read(ctx, c, o.namespace, now, &list, func(e Event) bool { return e.Object == object }, client.MatchingFields{"involvedObject.name": name}); err != nil {
			return nil, err
		}
	}
	plane := names.ControlPlaneNamespace(o.namespace, o.name)
	if err := o.read(ctx, c, plane, now, &list, func(Event) bool { return true }); err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b Event) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Object, b.Object), strings.Compare(a.Reason, b.Reason))
	})
	if o.limit > 0 && len(list) > o.limit {
		list = list[len(list)-o.limit:]
	}
	return list, nil
}

// read adds the events of a namespace that are wanted.
func (o *eventOptions) read(ctx context.Context, c client.Reader, namespace string, now time.Time, into *[]Event, ours func(Event) bool, more ...client.ListOption) error {
	list, seen := &corev1.EventList{}, 0
	for err := range read.Pages(ctx, c, list, pageSize, append(more, client.InNamespace(namespace))...) {
		if err != nil {
			return fmt.Errorf("listing events of namespace %s: %w", namespace, err)
		}
		seen += len(list.Items)
		for i := range list.Items {
			e := eventOf(&list.Items[i])
			switch {
			case !ours(e):
			case len(o.types) > 0 && !slices.Contains(o.types, e.Type):
			case o.since > 0 && now.Sub(e.Time) > o.since:
			default:
				*into = append(*into, e)
			}
		}
		if seen >= maxEvents {
			break
		}
	}
	return nil
}

// eventOf reads both forms of events, which the API server stores as one kind.
func eventOf(e *corev1.Event) Event {
	at := e.LastTimestamp.Time
	count := e.Count
	if s := e.Series; s != nil {
		at, count = s.LastObservedTime.Time, s.Count
	}
	for _, t := range []time.Time{e.EventTime.Time, e.CreationTimestamp.Time} {
		if at.IsZero() {
			at = t
		}
	}
	return Event{Time: at.UTC(), Type: e.Type, Reason: clip.Line(e.Reason), Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Message: e.Message, Count: count}
}

func exists(ctx context.Context, c client.Reader, namespace, name string) error {
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &hyperv1.HostedCluster{})
	if apierrors.IsNotFound(err) {
		return exit.With(exit.NotFound, fmt.Errorf("HostedCluster %s/%s not found: check its name and --namespace", namespace, name))
	}
	if err != nil {
		return fmt.Errorf("reading HostedCluster %s/%s: %w", namespace, name, err)
	}
	return nil
}
