package etcdrecovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/sidecar/etcdinit"
)

const (
	// poll is the time between two looks.
	poll = 5 * time.Second
	// patience is how long members may take to be healthy, before and after one was replaced.
	patience = 5 * time.Minute
	// election is how long a refusal has to last: when the failing member was the leader, nobody can say who the members are for some seconds.
	election = 30 * time.Second
	// askTimeout bounds one question to one member.
	askTimeout = 5 * time.Second
	// maxPods bounds what is read; an etcd has three.
	maxPods = 20
	// container is that of etcd in its pod, and volume the template of its claim.
	container = "etcd"
	volume    = "data"
)

// cluster is what recovery needs of etcd.
type cluster interface {
	Members(ctx context.Context) ([]etcdinit.Member, error)
	Remove(ctx context.Context, id uint64) error
	Healthy(ctx context.Context, m etcdinit.Member) error
}

// Recovery is one run of the Job.
type Recovery struct {
	Client    client.Client
	Namespace string
	// Name is that of the StatefulSet, and the label app of its pods.
	Name    string
	Cluster cluster
	Log     io.Writer

	poll, patience, election time.Duration // others in tests
}

// ErrRefused says that nothing may be deleted.
var ErrRefused = errors.New("no member is replaced")

// Run replaces at most one member and returns when all are healthy. It may be killed at any time: what is done shows in the cluster.
func (r Recovery) Run(ctx context.Context) error {
	d, pods, err := r.await(ctx, Done, Refuse, Replace)
	switch {
	case err != nil:
		return err
	case d.Action == Done:
		return nil
	case d.Action == Refuse:
		return fmt.Errorf("recovering %s in namespace %s: %w: %s", r.Name, r.Namespace, ErrRefused, d.Why)
	}
	if err := r.replace(ctx, d, pods); err != nil {
		return fmt.Errorf("replacing %s: %w", d.Pod, err)
	}
	// Whatever the members look like on the way, no second one is replaced.
	_, _, err = r.await(ctx, Done)
	return err
}

// await looks until one of the actions is due, for a while. What can't be read now may be readable a moment later.
func (r Recovery) await(ctx context.Context, wanted ...Action) (Decision, []corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	said, refused := "", time.Time{}
	for {
		obs, pods, err := r.observe(ctx)
		d := Decision{Action: Wait}
		if err != nil {
			d.Why = err.Error()
		} else {
			d = Decide(obs)
		}
		if d.Why != said {
			fmt.Fprintf(r.Log, "%s: %s\n", d.Action, d.Why)
			said = d.Why
		}
		if d.Action != Refuse {
			refused = time.Time{}
		} else if refused.IsZero() {
			refused = time.Now()
		}
		if slices.Contains(wanted, d.Action) && (d.Action != Refuse || time.Since(refused) >= r.election) {
			return d, pods, nil
		}
		select {
		case <-ctx.Done():
			return d, nil, fmt.Errorf("waiting for the members of %s in namespace %s: %w; at last: %s", r.Name, r.Namespace, ctx.Err(), said)
		case <-time.After(r.poll):
		}
	}
}

// observe reads everything. The pods come with it, because what is deleted must be what was looked at.
func (r Recovery) observe(ctx context.Context) (Observed, []corev1.Pod, error) {
	set := &appsv1.StatefulSet{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, set); err != nil {
		return Observed{}, nil, fmt.Errorf("reading StatefulSet %s/%s: %w", r.Namespace, r.Name, err)
	}
	obs := Observed{Replicas: 1}
	if set.Spec.Replicas != nil {
		obs.Replicas = int(*set.Spec.Replicas)
	}
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.InNamespace(r.Namespace), client.MatchingLabels{"app": r.Name}, client.Limit(maxPods)); err != nil {
		return Observed{}, nil, fmt.Errorf("listing pods of %s/%s: %w", r.Namespace, r.Name, err)
	}
	for i := range pods.Items {
		obs.Pods = append(obs.Pods, PodOf(&pods.Items[i]))
	}
	members, err := r.Cluster.Members(ctx)
	if err != nil {
		obs.ListErr = err
		return obs, pods.Items, nil //nolint:nilerr // a list that can't be read is what the plan decides about
	}
	for _, m := range members {
		seen := Member{ID: m.ID, Name: m.Name}
		if len(m.PeerURLs) > 0 {
			seen.PeerURL = m.PeerURLs[0]
		}
		ask, cancel := context.WithTimeout(ctx, askTimeout)
		seen.Healthy = r.Cluster.Healthy(ask, m) == nil
		cancel()
		obs.Members = append(obs.Members, seen)
	}
	return obs, pods.Items, nil
}

// PodOf is what counts of a member's pod.
func PodOf(pod *corev1.Pod) Pod {
	p := Pod{Name: pod.Name}
	for _, c := range pod.Status.Conditions {
		p.Ready = p.Ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == container {
			p.Restarts, p.Down = int(c.RestartCount), c.State.Waiting != nil || c.State.Terminated != nil
		}
	}
	return p
}

// Failing says whether the member in a pod crashes.
func Failing(pod *corev1.Pod) bool { return PodOf(pod).failing() }

// replace takes the member out first: that takes a quorum of the others, so that nothing is deleted when they have lost it meanwhile. The
// claim stays until its pod is gone, and the pod is deleted last, so that the next one gets another volume.
func (r Recovery) replace(ctx context.Context, d Decision, pods []corev1.Pod) error {
	if d.Remove != 0 {
		fmt.Fprintf(r.Log, "removing member %x\n", d.Remove)
		if err := r.Cluster.Remove(ctx, d.Remove); err != nil {
			return fmt.Errorf("removing member %x: %w", d.Remove, err)
		}
	}
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: r.Namespace, Name: volume + "-" + d.Pod}
	err := r.Client.Get(ctx, key, claim)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading PersistentVolumeClaim %s: %w", key, err)
	}
	if err == nil { // none when data goes with the pod
		fmt.Fprintf(r.Log, "deleting PersistentVolumeClaim %s\n", key.Name)
		if err := r.remove(ctx, claim); err != nil {
			return err
		}
	}
	i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == d.Pod })
	fmt.Fprintf(r.Log, "deleting Pod %s\n", d.Pod)
	return r.remove(ctx, &pods[i])
}

// remove deletes the object that was read, not one that has taken its place.
func (r Recovery) remove(ctx context.Context, obj client.Object) error {
	uid := obj.GetUID()
	err := r.Client.Delete(ctx, obj, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}
