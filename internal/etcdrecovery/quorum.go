package etcdrecovery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/backups"
)

// When most members are lost for good, none of those that are left does anything by itself: it can't know that the others are not there any more. A person
// says which member's data is to go on:
//
//	pause ─▶ no member runs ─▶ the survivor alone, once, with --force-new-cluster ─▶ volumes of the others gone ─▶ all members run ─▶ no pause, restart
//
// Nothing is deleted before the survivor has served alone. What is done is noted on the StatefulSet, so the command can be run again after it was
// interrupted anywhere; it goes on with the same survivor.

// noteAnnotation on the StatefulSet is a recovery that is under way, as JSON of note, of which others read a backups.Recovery.
const noteAnnotation = backups.RecoveryAnnotation

const (
	// quorumPatience bounds each wait of a recovery.
	quorumPatience = 10 * time.Minute
	// dataDir and quota of the survivor while it runs alone; metricsPort answers probes.
	dataDir     = "/var/lib/data"
	quota       = 8 << 30
	metricsPort = 2382
)

// note is what a recovery has to remember.
type note struct {
	From     string `json:"from"`
	Replicas int32  `json:"replicas"`
	// Paused is true when the recovery has paused the HostedCluster, and has to end that: Before is what spec.pausedUntil said, nil for nothing. Older versions
	// paused only when it said nothing, and noted no more.
	Paused bool    `json:"paused"`
	Before *string `json:"before,omitempty"`
	// Alone is true once the survivor has served alone: from then on the volumes of the others are of no use.
	Alone bool `json:"alone"`
	// Snapshot is the URL of the one that replaces the data; empty: that of a member goes on. APIServers is how many there were before they were stopped for it.
	Snapshot   string `json:"snapshot,omitempty"`
	APIServers int32  `json:"apiServers,omitempty"`
	// Shards are the members of the other etcds that are restored with this one, by the shard's name. Bump is what is added to revisions of the main etcd, ShardBumps to
	// those of shards; older versions have noted Bump for all.
	Shards     map[string]int32  `json:"shards,omitempty"`
	Bump       uint64            `json:"bump,omitempty"`
	ShardBumps map[string]uint64 `json:"shardBumps,omitempty"`
	// Prepared is true once what replaces the data lies beside it, in every etcd. Replaced are shards in which it has.
	Prepared bool     `json:"prepared,omitempty"`
	Replaced []string `json:"replaced,omitempty"`
	// Dropped are the StatefulSets whose other members have lost their volumes: from then on all may run. Older versions have not noted it. Again are those whose
	// members ran before that, so that the survivor has to serve alone once more.
	Dropped []string `json:"dropped,omitempty"`
	Again   []string `json:"again,omitempty"`
}

// Quorum is a recovery of an etcd that has lost its quorum.
type Quorum struct {
	Client client.Client
	// Cluster is the HostedCluster, Namespace that of its control plane, Name the StatefulSet: etcd, or etcd-<shard>.
	Cluster         client.ObjectKey
	Namespace, Name string
	// From is the pod of the member whose data goes on, such as etcd-1.
	From string
	// Snapshot replaces the data of all members, of which From is the first; nil: the data of From goes on.
	Snapshot *Snapshot
	Log      io.Writer
	// Poll and Patience are for tests; 0: 5 s and 10 min.
	Poll, Patience time.Duration
}

// ErrQuorum says that nothing is to be recovered that way.
var ErrQuorum = errors.New("nothing was changed")

// checkQuorum says why a recovery must not begin. pods are those of the StatefulSet, claims the names of the claims that there are. With a note it has begun.
func checkQuorum(name string, replicas int32, from string, begun *note, pods []Pod, claims []string) error {
	if begun != nil {
		if begun.Snapshot != "" {
			return fmt.Errorf("%w: a restore of %s is in progress: continue it with hypershift restore --in-place --from %s", ErrQuorum, begun.Snapshot, begun.Snapshot)
		}
		if from != begun.From {
			return fmt.Errorf("%w: a recovery from %s is in progress: continue it with --from %s", ErrQuorum, begun.From, begun.From)
		}
		return nil
	}
	var all, kept []string
	for i := range replicas {
		pod := fmt.Sprintf("%s-%d", name, i)
		all = append(all, pod)
		if slices.Contains(claims, volume+"-"+pod) {
			kept = append(kept, pod)
		}
	}
	ready := 0
	for _, p := range pods {
		if p.Ready {
			ready++
		}
	}
	switch {
	case replicas < 3:
		return fmt.Errorf("%w: %s has %d members, so there is no quorum to lose: when its data is lost, restore a backup", ErrQuorum, name, replicas)
	case ready > int(replicas)/2:
		return fmt.Errorf("%w: %d of %d members are ready, which is a quorum: a member that fails is replaced by itself", ErrQuorum, ready, replicas)
	case !slices.Contains(all, from):
		return fmt.Errorf("%w: --from is %q: name the member whose data to use: %s", ErrQuorum, from, strings.Join(kept, ", "))
	case !slices.Contains(kept, from):
		return fmt.Errorf("%w: %s has no volume any more: name another with --from: %s", ErrQuorum, from, strings.Join(kept, ", "))
	}
	return nil
}

// Run recovers, and returns when all members are ready. It may be killed at any time and run again.
func (q Quorum) Run(ctx context.Context) error {
	q = q.patient()
	set, n, err := q.begin(ctx)
	if n == nil {
		return err
	}
	if err == nil {
		err = q.goOn(ctx, set, n)
	}
	if err != nil && !errors.Is(err, ErrNotRestored) { // which has ended everything
		// It is noted what is done, wherever it was interrupted.
		return fmt.Errorf("%w; run the command again to continue", err)
	}
	return err
}

// patient has the times that are not for tests.
func (q Quorum) patient() Quorum {
	q.Poll, q.Patience = cmp.Or(q.Poll, poll), cmp.Or(q.Patience, quorumPatience)
	return q
}

// goOn does what is left after everybody else was paused.
func (q Quorum) goOn(ctx context.Context, set *appsv1.StatefulSet, n *note) error {
	if q.Snapshot != nil && n.Bump != 0 {
		q.Snapshot = q.Snapshot.as(n)
	}
	if n.Alone { // since an earlier run
		if err := q.stopAgain(ctx, set, n); err != nil {
			return err
		}
		if err := q.forgetRewriting(ctx); err != nil {
			return err
		}
	} else {
		if err := q.stopAPIServers(ctx, n); err != nil {
			return err
		}
		if err := q.stop(ctx, set); err != nil {
			return err
		}
		if err := q.forgetRewriting(ctx); err != nil {
			return err
		}
		err := q.prepareAll(ctx, set, n)
		if err == nil {
			err = q.serveAlone(ctx, set, n.From)
		}
		if s := (stop{}); errors.As(err, &s) && s.untouched {
			return q.giveUp(ctx, set, n, err)
		}
		if err != nil {
			return err
		}
		n.Alone = true
		if err := q.annotate(ctx, set, n); err != nil {
			return err
		}
	}
	if err := q.replaceShards(ctx, set, n); err != nil {
		return err
	}
	return q.finish(ctx, set, n)
}

// stop stops all members, and a pod that a killed run has left, which would delete what this one restores.
func (q Quorum) stop(ctx context.Context, set *appsv1.StatefulSet) error {
	if err := q.await(ctx, "members to stop", func(ctx context.Context) (bool, error) { return q.stopped(ctx, set) }); err != nil || q.Snapshot == nil {
		return err
	}
	return q.end(ctx, beside(set, toDiscard))
}

// begin checks, notes what is done, and pauses everybody else. It returns the note beside an error, too, once that is written.
func (q Quorum) begin(ctx context.Context) (*appsv1.StatefulSet, *note, error) {
	set := &appsv1.StatefulSet{}
	key := client.ObjectKey{Namespace: q.Namespace, Name: q.Name}
	if err := q.Client.Get(ctx, key, set); err != nil {
		return nil, nil, fmt.Errorf("reading StatefulSet %s: %w", key, err)
	}
	var begun *note
	if text := set.Annotations[noteAnnotation]; text != "" {
		begun = &note{}
		if err := json.Unmarshal([]byte(text), begun); err != nil {
			return nil, nil, fmt.Errorf("reading annotation %s of StatefulSet %s: %w; remove it to start again", noteAnnotation, key, err)
		}
	}
	if begun == nil && q.isRestored(set) {
		return nil, nil, nil
	}
	var err error
	list, claims := &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}
	ours := []client.ListOption{client.InNamespace(q.Namespace), client.MatchingLabels{"app": q.Name}}
	if err := q.Client.List(ctx, list, append(ours, client.Limit(maxPods))...); err != nil {
		return nil, nil, fmt.Errorf("listing pods of %s: %w", key, err)
	}
	if err := q.Client.List(ctx, claims, client.InNamespace(q.Namespace), client.Limit(500)); err != nil {
		return nil, nil, fmt.Errorf("listing volume claims of %s: %w", key, err)
	}
	var pods []Pod
	for i := range list.Items {
		pods = append(pods, PodOf(&list.Items[i]))
	}
	var names []string
	for i := range claims.Items {
		names = append(names, claims.Items[i].Name)
	}
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	if q.Snapshot != nil {
		err = q.Snapshot.check(replicas, begun)
	} else {
		err = checkQuorum(q.Name, replicas, q.From, begun, pods, names)
	}
	if err != nil {
		return nil, nil, err
	}
	if begun != nil {
		q.say("going on with the recovery from %s", cmp.Or(begun.Snapshot, begun.From))
		return set, begun, q.pause(ctx, set, begun)
	}
	if _, err := q.hostedCluster(ctx); err != nil {
		return nil, nil, err
	}
	n := &note{From: q.From, Replicas: replicas}
	if err := q.noteSnapshot(ctx, n); err != nil {
		return nil, nil, err
	}
	if err := q.canEnd(ctx, n); err != nil {
		return nil, nil, err
	}
	if err := q.annotate(ctx, set, n); err != nil {
		return nil, nil, err
	}
	return set, n, q.pause(ctx, set, n)
}

// stopped scales the StatefulSet down, and says whether no pod of it is left.
func (q Quorum) stopped(ctx context.Context, set *appsv1.StatefulSet) (bool, error) {
	if err := q.reread(ctx, set); err != nil {
		return false, err
	}
	if ptr.Deref(set.Spec.Replicas, 1) != 0 {
		q.say("stopping all members of %s", q.Name)
		if err := q.patch(ctx, set, `{"spec":{"replicas":0}}`); err != nil {
			return false, err
		}
	}
	return q.ended(ctx, q.Name)
}

// serveAlone has the survivor forget the others: once, in a pod of its own, which nobody reaches.
func (q Quorum) serveAlone(ctx context.Context, set *appsv1.StatefulSet, from string) error {
	if err := q.undisturbed(ctx, set); err != nil {
		return err
	}
	pod := alonePod(set, from)
	if q.Snapshot != nil {
		if err := q.ensureClaim(ctx, set, from); err != nil {
			return err
		}
		q.Snapshot.restoreIn(pod, set, from)
	}
	q.say("starting %s alone, with the volume of %s", pod.Name, from)
	return q.runOnce(ctx, pod, "the survivor to serve alone", func(live *corev1.Pod) bool { return PodOf(live).Ready })
}

// runOnce starts a pod, waits until it has done what it is for, and ends it.
func (q Quorum) runOnce(ctx context.Context, pod *corev1.Pod, what string, done func(*corev1.Pod) bool) error {
	if err := q.Client.Create(ctx, pod.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating pod %s: %w", pod.Name, err)
	}
	err := q.await(ctx, what+": see the log of pod "+pod.Name, func(ctx context.Context) (bool, error) {
		live := &corev1.Pod{}
		if err := q.Client.Get(ctx, client.ObjectKeyFromObject(pod), live); err != nil {
			return false, fmt.Errorf("reading pod %s: %w", pod.Name, err)
		}
		if s, failed := failure(live); failed {
			return false, s
		}
		return done(live), nil
	})
	if err != nil && !errors.As(err, &stop{}) {
		return err
	}
	return errors.Join(err, q.end(ctx, pod)) // one that failed goes, too, so that the next run starts another
}

// end deletes a pod, and waits until it is gone.
func (q Quorum) end(ctx context.Context, pod *corev1.Pod) error {
	return q.await(ctx, "pod "+pod.Name+" to end", func(ctx context.Context) (bool, error) {
		err := q.Client.Delete(ctx, pod.DeepCopy())
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// alonePod runs the survivor's etcd with its own volume and nothing else, as it runs in the StatefulSet. Labels of the StatefulSet's pods are left out, so that no
// Service leads to it.
func alonePod(set *appsv1.StatefulSet, from string) *corev1.Pod {
	template := set.Spec.Template.DeepCopy()
	spec := template.Spec
	spec.InitContainers, spec.RestartPolicy, spec.Hostname, spec.Subdomain = nil, corev1.RestartPolicyNever, "", ""
	spec.Volumes = []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: volume + "-" + from}}}}
	spec.AutomountServiceAccountToken = ptr.To(false)
	spec.Affinity = nil // it has no siblings to keep away from
	i := max(0, slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == container }))
	c := spec.Containers[i]
	c.Command, c.Args, c.Env, c.EnvFrom, c.Ports, c.LivenessProbe, c.StartupProbe = append([]string{"etcd"}, aloneFlags(from, dataDir, metricsPort)...), nil, nil, nil, nil, nil, nil
	c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError // the command repeats why it failed
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 2, FailureThreshold: 1}
	c.ReadinessProbe.TCPSocket = nil
	c.ReadinessProbe.HTTPGet = &corev1.HTTPGetAction{Path: "/readyz", Scheme: corev1.URISchemeHTTP}
	c.ReadinessProbe.HTTPGet.Port.IntVal = metricsPort
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name != volume })
	spec.Containers = []corev1.Container{c}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name + "-alone", Annotations: template.Annotations}, Spec: spec}
}

// aloneFlags of etcd: clients and peers reach it from its own pod alone. The addresses that it has on its list of members stay.
func aloneFlags(name, dir string, port int) []string {
	return []string{
		"--force-new-cluster", "--name=" + name, "--data-dir=" + dir, fmt.Sprintf("--quota-backend-bytes=%d", int64(quota)),
		"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380", fmt.Sprintf("--listen-metrics-urls=http://0.0.0.0:%d", port),
	}
}

// finish deletes the volumes of the others, starts all members, ends the pause, and has the control plane begin anew: what it remembers may be of writes that are
// lost.
func (q Quorum) finish(ctx context.Context, set *appsv1.StatefulSet, n *note) error {
	if err := q.startAll(ctx, set, set, n, n.From, n.Replicas); err != nil {
		return err
	}
	if err := q.startAPIServers(ctx, n); err != nil {
		return err
	}
	if err := q.resume(ctx, set, n, true); err != nil {
		return err
	}
	q.say("all %d members are ready with the data of %s; the control plane restarts", n.Replicas, cmp.Or(n.Snapshot, n.From))
	return nil
}

// startAll deletes the volumes of the members but that of from, and starts them all. What is done is noted on main, the StatefulSet of the main etcd.
func (q Quorum) startAll(ctx context.Context, set, main *appsv1.StatefulSet, n *note, from string, replicas int32) error {
	if err := q.dropOthers(ctx, set, main, n, from, replicas); err != nil {
		return err
	}
	if err := q.reread(ctx, set); err != nil {
		return err
	}
	if ptr.Deref(set.Spec.Replicas, 1) == 0 {
		q.say("starting all %d members of %s", replicas, q.Name)
		if err := q.patch(ctx, set, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)); err != nil {
			return err
		}
	}
	return q.await(ctx, "all members to be ready", func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		if err := q.Client.List(ctx, pods, client.InNamespace(q.Namespace), client.MatchingLabels{"app": q.Name}, client.Limit(maxPods)); err != nil {
			return false, fmt.Errorf("listing pods of %s: %w", q.Name, err)
		}
		ready := int32(0)
		for i := range pods.Items {
			if PodOf(&pods.Items[i]).Ready {
				ready++
			}
		}
		return ready == replicas, nil
	})
}

// resume ends the pause, and forgets what was noted. What a restore has brought stays noted until Forget, in the same write, so that the URL never restores again
// by an accident.
func (q Quorum) resume(ctx context.Context, set *appsv1.StatefulSet, n *note, restart bool) error {
	noted := map[string]any{noteAnnotation: nil}
	if restart && n.Snapshot != "" {
		noted[restoredAnnotation] = restoredText(n.Snapshot, time.Now())
	}
	forget, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": noted}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	// An answer that is lost here must not have somebody run the command again: a recovery would begin anew.
	return q.await(ctx, "the pause to end", func(ctx context.Context) (bool, error) {
		hc, err := q.hostedCluster(ctx)
		if err != nil {
			return false, err
		}
		text, err := json.Marshal(endOfPause(hc, n, restart, time.Now()))
		if err != nil {
			return false, fmt.Errorf("encoding a patch: %w", err)
		}
		if err := q.patch(ctx, hc, string(text)); err != nil {
			return false, err
		}
		return true, q.patch(ctx, set, string(forget))
	})
}

func (q Quorum) annotate(ctx context.Context, set *appsv1.StatefulSet, n *note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encoding what is done: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{noteAnnotation: string(text)}}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	return q.patch(ctx, set, string(patch))
}

func (q Quorum) patch(ctx context.Context, obj client.Object, merge string) error {
	if err := q.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(merge))); err != nil {
		return fmt.Errorf("changing %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// await asks until it is so. An error that may pass is tried again until time is up.
func (q Quorum) await(ctx context.Context, what string, so func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, q.Patience)
	defer cancel()
	told, said := false, ""
	for {
		ok, err := so(ctx)
		if ok && err == nil {
			return nil
		}
		if errors.As(err, &stop{}) {
			return err
		}
		if !told {
			q.say("waiting for %s", what)
			told = true
		}
		if err != nil && err.Error() != said { // what holds it is no secret until time is up
			said = err.Error()
			q.say("%s", said)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, errors.Join(ctx.Err(), err))
		case <-time.After(q.Poll):
		}
	}
}

func (q Quorum) say(format string, args ...any) { fmt.Fprintf(q.Log, format+"\n", args...) }
