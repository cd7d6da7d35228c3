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
)

// Until the volumes of the others are gone, members must not run: the others would go on with data of before. Somebody who ends the pause meanwhile has operators
// start them nonetheless. Then the next run stops them again. The survivor may have taken some of them in by then, and would wait for their votes once their volumes
// are gone: so it serves alone once more, with the data that it has.

// stopAgain stops members that run although the volumes of the others are not known to be gone, and API servers that would read and write there.
func (q Quorum) stopAgain(ctx context.Context, set *appsv1.StatefulSet, n *note) error {
	type etcd struct {
		of  Quorum
		set *appsv1.StatefulSet
	}
	var early []etcd
	left := false
	look := func(of Quorum, s *appsv1.StatefulSet) error {
		if slices.Contains(n.Dropped, of.Name) {
			return nil
		}
		left = true
		again := slices.Contains(n.Again, of.Name) // it was killed while they stopped
		if !again && ptr.Deref(s.Spec.Replicas, 1) != 0 {
			again, n.Again = true, append(n.Again, of.Name)
		}
		if again {
			early = append(early, etcd{of, s})
		}
		return nil
	}
	if err := q.reread(ctx, set); err != nil {
		return err
	}
	if err := errors.Join(look(q, set), q.each(ctx, n, look)); err != nil || !left {
		return err
	}
	if len(early) > 0 {
		q.say("members were started before the data of before was gone: they stop again")
		if err := q.annotate(ctx, set, n); err != nil {
			return err
		}
	}
	if err := q.stopAPIServers(ctx, n); err != nil {
		return err
	}
	for _, e := range early {
		if err := e.of.stop(ctx, e.set); err != nil {
			return err
		}
	}
	return nil
}

// undisturbed says whether members are still stopped. This run doesn't stop them again: the pause is over, and they would be started again.
func (q Quorum) undisturbed(ctx context.Context, set *appsv1.StatefulSet) error {
	if err := q.reread(ctx, set); err != nil {
		return err
	}
	if ptr.Deref(set.Spec.Replicas, 1) != 0 {
		return fmt.Errorf("members of %s were started meanwhile: leave spec.pausedUntil of HostedCluster %s as it is until the command has ended", q.Name, q.Cluster)
	}
	return nil
}

// dropOthers deletes the volumes of all members but that of from, once.
func (q Quorum) dropOthers(ctx context.Context, set, main *appsv1.StatefulSet, n *note, from string, replicas int32) error {
	if slices.Contains(n.Dropped, q.Name) {
		return nil
	}
	if slices.Contains(n.Again, q.Name) {
		as := q
		as.Snapshot = nil // it is in
		if err := as.serveAlone(ctx, set, from); err != nil {
			return err
		}
	}
	if err := q.undisturbed(ctx, set); err != nil {
		return err
	}
	for i := range replicas {
		if pod := fmt.Sprintf("%s-%d", q.Name, i); pod != from {
			if err := q.dropVolume(ctx, volume+"-"+pod); err != nil {
				return err
			}
		}
	}
	n.Dropped, n.Again = append(n.Dropped, q.Name), without(n.Again, q.Name)
	return q.annotate(ctx, main, n)
}

func (q Quorum) dropVolume(ctx context.Context, name string) error {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: q.Namespace, Name: name}}
	q.say("deleting PersistentVolumeClaim %s", name)
	return q.await(ctx, "PersistentVolumeClaim "+name+" to go", func(ctx context.Context) (bool, error) {
		err := q.Client.Delete(ctx, claim.DeepCopy())
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

func (q Quorum) reread(ctx context.Context, set *appsv1.StatefulSet) error {
	if err := q.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return fmt.Errorf("reading StatefulSet %s: %w", client.ObjectKeyFromObject(set), err)
	}
	return nil
}

func without(list []string, name string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == name })
}
