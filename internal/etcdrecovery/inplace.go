package etcdrecovery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/contract/backups"
)

// A restore in place is a recovery whose survivor begins with a snapshot:
//
//	pause ─▶ no API server runs ─▶ no member runs ─▶ the first member alone, filled from the snapshot ─▶ volumes of the others gone ─▶ all run ─▶ no pause, restart
//
// Authorities, machines and everything else of the control plane stay as they are. While the snapshot isn't restored whole beside the data of before, that stays, too.

// apiServer is the Deployment, and the label app of its pods.
const apiServer = "kube-apiserver"

// restorer is the container that fills the volume, config the volume with etcd's configuration.
const restorer, config = "etcd-init", "config"

// maxWhy bounds what is repeated of a container's last words.
const maxWhy = 1024

// ErrNotRestored says that a snapshot could not be read or restored, and that the cluster goes on as before.
var ErrNotRestored = errors.New("the snapshot was not restored, and the previous data is unchanged")

// Snapshot is what replaces the data of an etcd.
type Snapshot struct {
	// URL is where it is: s3://BUCKET/NAME. How to read it is in Secret backups.Secret of the control plane's namespace.
	URL string
	// Image has hcp-sidecar, control-plane-operator and hcp-cloud.
	Image string
	// Bump is added to the snapshot's revision, ShardBumps to those of shards, and Bump where that has none. They must lead beyond every revision that clients have seen.
	Bump       uint64
	ShardBumps map[string]uint64
	// Shards are the other etcds that are restored with it, by the shards' names. Shard is that of the etcd itself; empty: the main one.
	Shards []string
	Shard  string
}

// check says why a restore in place must not begin. replicas are those of the StatefulSet.
func (s Snapshot) check(replicas int32, begun *note) error {
	switch {
	case begun != nil && begun.Snapshot == "":
		return fmt.Errorf("%w: a recovery from %s is under way: end it by hypershift etcd recover --from %s", ErrQuorum, begun.From, begun.From)
	case begun != nil && begun.Snapshot != s.URL:
		return fmt.Errorf("%w: a restore of %s is in progress: continue it with --from %s", ErrQuorum, begun.Snapshot, begun.Snapshot)
	case begun == nil && replicas == 0:
		return fmt.Errorf("%w: etcd doesn't run: wake the hosted cluster first", ErrQuorum)
	}
	return nil
}

// stop is an error that waiting doesn't mend. untouched: the previous data is unchanged.
type stop struct {
	why       string
	untouched bool
}

// Error implements error.
func (s stop) Error() string { return s.why }

// failure says why a pod has ended for good.
func failure(pod *corev1.Pod) (_ stop, failed bool) {
	if pod.Status.Phase != corev1.PodFailed {
		return stop{}, false
	}
	s := stop{why: fmt.Sprintf("pod %s failed: %s", pod.Name, clip.Line(pod.Status.Message))}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			s.why = fmt.Sprintf("container %s of pod %s ended with code %d: %s", c.Name, pod.Name, t.ExitCode, clip.Line(t.Message))
			s.untouched = c.Name == restorer
			break
		}
	}
	s.why = clip.Over(s.why, maxWhy, " …")
	return s, true
}

// noteSnapshot remembers what is restored, and what was stopped for it.
func (q Quorum) noteSnapshot(ctx context.Context, n *note) error {
	if q.Snapshot == nil {
		return nil
	}
	d := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: q.Namespace, Name: apiServer}
	if err := q.Client.Get(ctx, key, d); err != nil {
		return fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	n.Snapshot, n.APIServers = q.Snapshot.URL, ptr.Deref(d.Spec.Replicas, 1)
	return q.noteShards(ctx, n)
}

// stopAPIServers keeps everybody from reading and writing while the data is exchanged: what API servers have in memory would be of other data than etcd's.
func (q Quorum) stopAPIServers(ctx context.Context, n *note) error {
	if n.Snapshot == "" {
		return nil
	}
	q.say("stopping kube-apiserver")
	return q.await(ctx, "kube-apiserver to stop", func(ctx context.Context) (bool, error) {
		if err := q.scaleAPIServers(ctx, 0); err != nil {
			return false, err
		}
		return q.ended(ctx, apiServer)
	})
}

func (q Quorum) startAPIServers(ctx context.Context, n *note) error {
	if n.Snapshot == "" {
		return nil
	}
	q.say("starting kube-apiserver")
	return q.scaleAPIServers(ctx, n.APIServers)
}

func (q Quorum) scaleAPIServers(ctx context.Context, replicas int32) error {
	return q.patch(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: q.Namespace, Name: apiServer}}, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

// ensureClaim makes the volume of a member again when it is lost, as the StatefulSet would.
func (q Quorum) ensureClaim(ctx context.Context, set *appsv1.StatefulSet, pod string) error {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: q.Namespace, Name: volume + "-" + pod, Labels: set.Spec.Selector.MatchLabels}}
	for _, t := range set.Spec.VolumeClaimTemplates {
		if t.Name == volume {
			claim.Spec = *t.Spec.DeepCopy()
		}
	}
	if err := q.Client.Create(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating PersistentVolumeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// restoreIn gives the pod that runs a member alone a container that fills its volume first.
func (s Snapshot) restoreIn(pod *corev1.Pod, set *appsv1.StatefulSet, from string) {
	pod.Labels = map[string]string{backups.RestoreLabel: ""}
	for _, v := range set.Spec.Template.Spec.Volumes {
		if v.Name == config {
			pod.Spec.Volumes = append(pod.Spec.Volumes, *v.DeepCopy())
		}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: backups.Secret, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: backups.Secret, DefaultMode: ptr.To[int32](0o440)}}})
	etcd := pod.Spec.Containers[0]
	args := []string{"--config-template=/etc/etcd/config/etcd.yaml", "--replace", fmt.Sprintf("--revision-bump=%d", s.Bump)}
	if s.Shard != "" {
		args = append(args, "--shard="+s.Shard)
	}
	pod.Spec.InitContainers = []corev1.Container{{
		Name: restorer, Image: s.Image, ImagePullPolicy: etcd.ImagePullPolicy, SecurityContext: etcd.SecurityContext.DeepCopy(),
		Command: []string{"/usr/bin/hcp-sidecar", "etcd-init", "restore"},
		Args:    args,
		Env:     []corev1.EnvVar{{Name: "POD_NAME", Value: from}, {Name: "RESTORE_URL_ETCD", Value: s.URL}},
		// Why it failed is told by the command.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: append([]corev1.VolumeMount{
			{Name: config, MountPath: "/etc/etcd/config", ReadOnly: true},
			{Name: backups.Secret, MountPath: backups.Mount, ReadOnly: true},
		}, etcd.VolumeMounts...),
	}}
}

// giveUp lets members and API servers run with the data of before, when the snapshot could not be restored beside it.
func (q Quorum) giveUp(ctx context.Context, set *appsv1.StatefulSet, n *note, why error) error {
	q.say("the snapshot can't be restored: everything continues with the previous data")
	n.Prepared = false // whoever goes on has to prepare everything again
	err := q.annotate(ctx, set, n)
	if err == nil {
		q.discardAll(ctx, set, n)
		err = q.patch(ctx, set, fmt.Sprintf(`{"spec":{"replicas":%d}}`, n.Replicas))
	}
	if err == nil {
		err = q.startShards(ctx, n)
	}
	if err == nil {
		err = q.startAPIServers(ctx, n)
	}
	if err == nil {
		err = q.resume(ctx, set, n, false)
	}
	if err != nil {
		return fmt.Errorf("the snapshot was not restored: %w; going back to the previous data: %w", why, err)
	}
	return fmt.Errorf("%w: %w", ErrNotRestored, why)
}
