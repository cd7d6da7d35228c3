package etcdrecovery

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/kube/read"
)

// A control plane with shards is restored in two steps, so that it never goes on with some etcds of the backup and others of before:
//
//	all members of all etcds stop ─▶ each etcd has its snapshot restored beside its data ─▶ each exchanges them, the main etcd first
//
// The first may fail, and everything goes on with the data of before. The second needs no storage any more, and is gone on with until it has ended.

// as is the snapshot as it was noted: what was prepared by an earlier run has these revisions.
func (s Snapshot) as(n *note) *Snapshot {
	s.Bump, s.ShardBumps = n.Bump, n.ShardBumps
	return &s
}

// shard is the same restore for another etcd.
func (q Quorum) shard(name string) Quorum {
	s := *q.Snapshot
	s.Shard, s.Bump = name, cmp.Or(s.ShardBumps[name], s.Bump)
	q.Snapshot, q.Name = &s, backups.EtcdOf(name)
	q.From = q.Name + "-0"
	return q
}

// noteShards remembers how many members the shards have.
func (q Quorum) noteShards(ctx context.Context, n *note) error {
	for _, name := range q.Snapshot.Shards {
		set, err := q.shard(name).set(ctx)
		if err != nil {
			return err
		}
		if n.Shards == nil {
			n.Shards = map[string]int32{}
		}
		n.Shards[name], n.Bump, n.ShardBumps = ptr.Deref(set.Spec.Replicas, 1), q.Snapshot.Bump, q.Snapshot.ShardBumps
		if n.Shards[name] == 0 {
			return fmt.Errorf("%w: %s doesn't run: wake the hosted cluster first", ErrQuorum, set.Name)
		}
	}
	return nil
}

func (q Quorum) set(ctx context.Context) (*appsv1.StatefulSet, error) {
	set := &appsv1.StatefulSet{}
	key := client.ObjectKey{Namespace: q.Namespace, Name: q.Name}
	if err := q.Client.Get(ctx, key, set); err != nil {
		return nil, fmt.Errorf("reading StatefulSet %s: %w", key, err)
	}
	return set, nil
}

// each does something with every shard, in the order of their names.
func (q Quorum) each(ctx context.Context, n *note, do func(Quorum, *appsv1.StatefulSet) error) error {
	for _, name := range slices.Sorted(maps.Keys(n.Shards)) {
		of := q.shard(name)
		set, err := of.set(ctx)
		if err == nil {
			err = do(of, set)
		}
		if err != nil {
			return fmt.Errorf("shard %s: %w", name, err)
		}
	}
	return nil
}

// prepareAll stops the shards, and restores every etcd's snapshot beside its data. Without shards there is nothing to prepare: the main etcd is restored at once.
func (q Quorum) prepareAll(ctx context.Context, set *appsv1.StatefulSet, n *note) error {
	// They may run again, when somebody ended the command as it went back to the data of before.
	if err := q.each(ctx, n, func(of Quorum, s *appsv1.StatefulSet) error { return of.stop(ctx, s) }); err != nil || len(n.Shards) == 0 || n.Prepared {
		return err
	}
	if err := q.prepare(ctx, set); err != nil {
		return err
	}
	if err := q.each(ctx, n, func(of Quorum, s *appsv1.StatefulSet) error { return of.prepare(ctx, s) }); err != nil {
		return err
	}
	n.Prepared = true
	return q.annotate(ctx, set, n)
}

// prepare runs a pod that restores the snapshot beside the data.
func (q Quorum) prepare(ctx context.Context, set *appsv1.StatefulSet) error {
	if err := q.ensureClaim(ctx, set, q.From); err != nil {
		return err
	}
	q.say("restoring the snapshot beside the data of %s", q.From)
	return q.runOnce(ctx, q.Snapshot.restorePod(set, q.From, toPrepare), "the snapshot to be restored", succeeded)
}

// discardAll deletes what restoring has left beside the data of every etcd. Where that fails it takes room until the next restore, which is no reason to stay away.
func (q Quorum) discardAll(ctx context.Context, set *appsv1.StatefulSet, n *note) {
	err := q.await(ctx, "what was restored to be deleted", func(ctx context.Context) (bool, error) {
		err := q.discard(ctx, set)
		if err == nil {
			err = q.each(ctx, n, func(of Quorum, s *appsv1.StatefulSet) error { return of.discard(ctx, s) })
		}
		return true, err
	})
	if err != nil {
		q.say("what was restored beside the data takes room there until the next restore: %v", err)
	}
}

// discard runs a pod that deletes what restoring has left beside the data. A volume that is lost has nothing.
func (q Quorum) discard(ctx context.Context, set *appsv1.StatefulSet) error {
	claim, err := read.Optional(ctx, q.Client, client.ObjectKey{Namespace: q.Namespace, Name: volume + "-" + q.From}, &corev1.PersistentVolumeClaim{})
	if err != nil || claim == nil {
		return err
	}
	q.say("deleting what was restored beside the data of %s", q.From)
	if err := q.end(ctx, beside(set, toPrepare)); err != nil { // of a run that was killed
		return err
	}
	return q.runOnce(ctx, q.Snapshot.restorePod(set, q.From, toDiscard), "what was restored to be deleted", succeeded)
}

// beside is the name of a pod that has a volume of etcd.
func beside(set *appsv1.StatefulSet, to string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name + "-" + to}}
}

func succeeded(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded }

// What a pod is for that has a volume of etcd and no etcd: flags of what restores, and ends of names.
const toPrepare, toDiscard = "prepare", "discard"

// restorePod has the container alone that restores, or discards what was restored.
func (s Snapshot) restorePod(set *appsv1.StatefulSet, from, to string) *corev1.Pod {
	pod := alonePod(set, from)
	s.restoreIn(pod, set, from)
	pod.Name = beside(set, to).Name
	c := pod.Spec.InitContainers[0]
	for i := range c.Args {
		if c.Args[i] == "--replace" {
			c.Args[i] = "--" + to
		}
	}
	pod.Spec.InitContainers, pod.Spec.Containers = nil, []corev1.Container{c}
	return pod
}

// replaceShards exchanges the data of the shards for what was prepared, and starts their members. The main etcd has done so: there is no way back.
func (q Quorum) replaceShards(ctx context.Context, set *appsv1.StatefulSet, n *note) error {
	err := q.each(ctx, n, func(of Quorum, s *appsv1.StatefulSet) error {
		if name := of.Snapshot.Shard; !slices.Contains(n.Replaced, name) {
			if err := of.serveAlone(ctx, s, of.From); err != nil {
				return err
			}
			n.Replaced, n.Again = append(n.Replaced, name), without(n.Again, of.Name)
			if err := q.annotate(ctx, set, n); err != nil {
				return err
			}
		}
		return of.startAll(ctx, s, set, n, of.From, n.Shards[of.Snapshot.Shard])
	})
	if err != nil {
		return fmt.Errorf("%w; the main etcd has the data of the backup", err)
	}
	return nil
}

// startShards starts the shards again with the data that they have.
func (q Quorum) startShards(ctx context.Context, n *note) error {
	return q.each(ctx, n, func(of Quorum, s *appsv1.StatefulSet) error {
		return of.patch(ctx, s, fmt.Sprintf(`{"spec":{"replicas":%d}}`, n.Shards[of.Snapshot.Shard]))
	})
}
