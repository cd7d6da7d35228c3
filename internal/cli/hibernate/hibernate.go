// Package hibernate is `hypershift hibernate` and `hypershift wake`: a hosted cluster sleeps without machines and without a control plane, and keeps its data.
package hibernate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/pause"
)

// until is what the flags say of the end of sleep.
type until struct {
	at   string
	span time.Duration
}

// value of the annotation.
func (u until) value(now time.Time) (string, error) {
	switch {
	case u.at != "" && u.span != 0:
		return "", errors.New("--until and --for say the same: leave one out")
	case u.span < 0:
		return "", fmt.Errorf("--for is %s: write a duration such as 12h", u.span)
	case u.span > 0:
		return now.Add(u.span).UTC().Truncate(time.Second).Format(time.RFC3339), nil
	case u.at == "":
		return "true", nil
	}
	at, err := time.Parse(time.RFC3339, u.at)
	if err != nil {
		return "", fmt.Errorf("--until is %q: write a time such as %s", u.at, now.Add(12*time.Hour).UTC().Format(time.RFC3339))
	}
	if !at.After(now) {
		return "", fmt.Errorf("--until is %s, which has passed: write a time to come", u.at)
	}
	return at.UTC().Format(time.RFC3339), nil
}

// times are what the flags say of a schedule.
type times struct {
	sleep, wake, zone string
	none              bool
}

func (t times) asked() bool { return t.sleep != "" || t.wake != "" || t.zone != "" }

// unscheduled is said of a cluster whose schedule is removed.
const unscheduled = "has no schedule any more"

// order is what a command writes and says.
type order struct {
	annotations map[string]any
	said        string
	// sleeps: the cluster is awake until then, as far as is known, and what it asks for goes.
	sleeps bool
}

// order is that of the flags. A new schedule ends what was ordered before.
func (t times) order(u until, now time.Time) (order, error) {
	if t.none && !t.asked() && u == (until{}) {
		return order{annotations: map[string]any{pause.ScheduleAnnotation: nil}, said: unscheduled}, nil
	}
	if !t.asked() {
		value, err := u.value(now)
		if err != nil {
			return order{}, err
		}
		o := order{annotations: map[string]any{hyperv1.HibernateAnnotation: value}, said: "goes to sleep; `hypershift wake` wakes it", sleeps: true}
		if value != "true" {
			o.said = "goes to sleep, and wakes at " + value
		}
		if t.none {
			o.annotations[pause.ScheduleAnnotation] = nil
			o.said = unscheduled + ", " + o.said
		}
		return o, nil
	}
	switch {
	case t.none || u.at != "" || u.span != 0:
		return order{}, errors.New("a schedule says when the cluster sleeps and wakes: leave out --no-schedule, --until and --for")
	case t.sleep == "" || t.wake == "":
		return order{}, errors.New("a schedule needs --sleep and --wake, such as --sleep \"0 20 * * 1-5\" --wake \"0 7 * * 1-5\"")
	}
	text := "sleep " + t.sleep + "; wake " + t.wake
	if t.zone != "" {
		text += "; zone " + t.zone
	}
	if _, err := pause.ParseSchedule(text); err != nil {
		return order{}, fmt.Errorf("--sleep, --wake, --time-zone: %w", err)
	}
	annotations := map[string]any{pause.ScheduleAnnotation: text, hyperv1.HibernateAnnotation: nil}
	return order{annotations: annotations, said: nextChange(map[string]string{pause.ScheduleAnnotation: text}, now), sleeps: true}, nil
}

// nextChange says what a schedule does next.
func nextChange(annotations map[string]string, now time.Time) string {
	sleep := pause.Hibernation(annotations, now)
	switch at := sleep.Next.UTC().Format(time.RFC3339); {
	case sleep.Next.IsZero():
		return "has no schedule"
	case sleep.Active:
		return "goes to sleep, and wakes at " + at + " by its schedule"
	default:
		return "sleeps at " + at + " by its schedule"
	}
}

// Command is `hypershift hibernate`.
func Command() *cobra.Command {
	var u until
	var t times
	cmd := command("hibernate", "Put a hosted cluster to sleep: no machines, no control plane, all data kept", `Put a hosted cluster to sleep. Its machines are drained and removed, then its control plane is stopped, etcd last. Data of etcd, addresses, certificates and the
sizes of NodePools are kept, and volumes of the hosted cluster, too; what nodes have on their own disks is lost with them. Nobody reaches the API until it wakes: a
connection does not wake it, a command or the schedule does. No alert fires. Condition Hibernated of the HostedCluster says how far it is.

With --sleep and --wake it sleeps by schedule. What was ordered last holds: a cluster that is woken stays awake until its schedule puts it to sleep the next time, and
one that is put to sleep by hand sleeps until it is woken by hand, or until the time that was given.`,
		`  hypershift hibernate demo
  hypershift hibernate demo --for 12h
  hypershift hibernate demo --until 2027-01-04T07:00:00Z
  hypershift hibernate demo --sleep "0 20 * * 1-5" --wake "0 7 * * 1-5" --time-zone Europe/Berlin
  hypershift hibernate demo --no-schedule`,
		func(_ *hyperv1.HostedCluster, now time.Time) (order, error) {
			return t.order(u, now)
		})
	f := cmd.Flags()
	f.StringVar(&u.at, "until", "", "Time at which it wakes by itself, such as 2027-01-04T07:00:00Z; never by default")
	f.DurationVar(&u.span, "for", 0, "How long it sleeps, such as 12h (default: until it is woken)")
	f.StringVar(&t.sleep, "sleep", "", "When it falls asleep by schedule: five fields of cron (minute, hour, day of month, month, day of week)")
	f.StringVar(&t.wake, "wake", "", "When it wakes by schedule, as for --sleep")
	f.StringVar(&t.zone, "time-zone", "", "Whose clocks the schedule goes by, such as Europe/Berlin (default UTC)")
	f.BoolVar(&t.none, "no-schedule", false, "Remove the schedule; a cluster that sleeps by schedule wakes, unless --for or --until is given")
	return cmd
}

// WakeCommand is `hypershift wake`.
func WakeCommand() *cobra.Command {
	return command("wake", "Wake a hosted cluster that sleeps", `Wake a hosted cluster: etcd comes first, then kube-apiserver, then the rest of the control plane, and once that is available the machines of its NodePools are made.
One with a schedule stays awake until that puts it to sleep the next time.`,
		`  hypershift wake demo
  hypershift describe demo`,
		func(hc *hyperv1.HostedCluster, now time.Time) (order, error) {
			return wake(hc, now), nil
		})
}

// wake is the order that ends sleep; none for a cluster with a schedule that is awake: a time that is still to come for the operator would put it to sleep.
func wake(hc *hyperv1.HostedCluster, now time.Time) order {
	told := meta.FindStatusCondition(hc.Status.Conditions, hyperv1.HostedClusterHibernated)
	// The operator, whose clock that is, may have seen the time to sleep before the API server.
	if pause.Asleep(hc.Status.Conditions) && told.LastTransitionTime.After(now) {
		now = told.LastTransitionTime.Time
	}
	schedule, value := hc.Annotations[pause.ScheduleAnnotation], hc.Annotations[hyperv1.HibernateAnnotation]
	sleep := pause.Hibernation(hc.Annotations, now)
	said := "wakes"
	switch {
	case sleep.Active:
	case told != nil && told.Reason != hyperv1.InvalidHibernateValueReason:
		said = "wakes already"
	default:
		said = "is awake"
	}
	switch {
	case schedule == "":
		return order{annotations: map[string]any{hyperv1.HibernateAnnotation: nil}, said: said}
	case !sleep.Active && !sleep.Next.IsZero():
		return order{said: said + ", and " + nextChange(hc.Annotations, now)}
	case !sleep.Active && sleep.Problem != "":
		return order{said: said + ", and has no schedule that can be read: " + sleep.Problem}
	case !sleep.Active:
		return order{said: fmt.Sprintf("%s, and stays so: annotation %s is %q", said, hyperv1.HibernateAnnotation, value)}
	}
	woken := pause.Woken(schedule, now)
	if woken == "" {
		return order{annotations: map[string]any{hyperv1.HibernateAnnotation: nil}, said: said}
	}
	next := nextChange(map[string]string{pause.ScheduleAnnotation: schedule, hyperv1.HibernateAnnotation: woken}, now)
	return order{annotations: map[string]any{hyperv1.HibernateAnnotation: woken}, said: said + ", and " + next}
}

// serverTime is what the clock of the API server shows. The operator runs beside it, and the clock of this machine may be wrong.
func serverTime(ctx context.Context, flags connect.Flags) (time.Time, error) {
	config, err := flags.RESTConfig()
	if err != nil {
		return time.Time{}, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the address of the API server: %w", err)
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return time.Time{}, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return time.Time{}, fmt.Errorf("asking %s for its time: %w", config.Host, err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return time.Time{}, fmt.Errorf("asking the API server for its time: %w", err)
	}
	_ = resp.Body.Close()                              // only its header is read
	at, err := http.ParseTime(resp.Header.Get("Date")) // who may not read the version is told the time, too
	if err != nil {
		return time.Time{}, fmt.Errorf("the API server's answer doesn't say when it was made: %w", err)
	}
	return at, nil
}

// command annotates a HostedCluster with what wanted says about it, and with nothing where that is no annotation. now is by the clock of the API server.
func command(use, short, long, example string, wanted func(hc *hyperv1.HostedCluster, now time.Time) (order, error)) *cobra.Command {
	var flags connect.Flags
	name, namespace := "", connect.DefaultNamespace
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := wanted(&hyperv1.HostedCluster{}, time.Now()); err != nil {
				return err // before anybody is asked
			}
			c, err := flags.Client()
			if err != nil {
				return err
			}
			cluster := client.ObjectKey{Namespace: namespace, Name: name}
			hc, err := read(cmd.Context(), c, cluster)
			if err != nil {
				return err
			}
			now, err := serverTime(cmd.Context(), flags)
			if err != nil {
				return err
			}
			o, err := wanted(hc, now)
			if err != nil {
				return err
			}
			freed := ""
			if o.sleeps {
				freed = freedBy(cmd.Context(), c, hc) // before anything ends
			}
			if err := annotate(cmd.Context(), c, cluster, o.annotations); err != nil {
				return err
			}
			if _, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s%s\n", cluster, o.said, flags.DryRun.Suffix()); err != nil || freed == "" {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), freed)
			return err
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "Name of the HostedCluster (required)")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", namespace, "Namespace of the HostedCluster")
	flags.AddFlags(cmd.Flags())
	flags.DryRun.AddFlag(cmd)
	if err := cmd.MarkFlagRequired("name"); err != nil {
		panic(err) // a misspelt flag above
	}
	connect.CompleteHostedClusters(cmd, &flags, "name", &namespace)
	connect.CompleteNamespaces(cmd, &flags, "namespace")
	return cmd
}

func read(ctx context.Context, c client.Client, cluster client.ObjectKey) (*hyperv1.HostedCluster, error) {
	hc := &hyperv1.HostedCluster{}
	if err := c.Get(ctx, cluster, hc); err != nil {
		return nil, told(cluster, "reading", err)
	}
	return hc, nil
}

func annotate(ctx context.Context, c client.Client, cluster client.ObjectKey, annotations map[string]any) error {
	if len(annotations) == 0 {
		return nil
	}
	hc := &hyperv1.HostedCluster{}
	hc.Namespace, hc.Name = cluster.Namespace, cluster.Name
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	if err := c.Patch(ctx, hc, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(connect.FieldOwner)); err != nil {
		return told(cluster, "annotating", err)
	}
	return nil
}

func told(cluster client.ObjectKey, doing string, err error) error {
	if apierrors.IsNotFound(err) {
		return exit.With(exit.NotFound, fmt.Errorf("there is no HostedCluster %s: `kubectl get hostedclusters -A` lists them", cluster))
	}
	return fmt.Errorf("%s HostedCluster %s: %w", doing, cluster, err)
}
