package etcdrecovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/backups"
)

// A pod on a node that was lost stays, as nobody knows whether it still runs: the API server removes it when the kubelet has ended it, or when somebody who knows
// that the machine is off says so. Until then no member may start from the same data, so the recovery can't begin.

// ended says whether the pods of an app are gone. Its error names those that are left, and what holds them.
func (q Quorum) ended(ctx context.Context, app string) (bool, error) {
	pods, err := q.podsOf(ctx, app)
	if err != nil || len(pods) == 0 {
		return err == nil, err
	}
	return false, errors.New("still there: " + described(pods) + remedy(q.silent(ctx, pods)))
}

// canEnd says why members, and with a snapshot API servers, could not be stopped. Nothing is changed yet.
func (q Quorum) canEnd(ctx context.Context, n *note) error {
	apps := []string{q.Name}
	for _, shard := range slices.Sorted(maps.Keys(n.Shards)) {
		apps = append(apps, backups.EtcdOf(shard))
	}
	if n.Snapshot != "" {
		apps = append(apps, apiServer)
	}
	var held []corev1.Pod
	var nodes []string
	for _, app := range apps {
		pods, err := q.podsOf(ctx, app)
		if err != nil {
			return err
		}
		silent := q.silent(ctx, pods)
		nodes = append(nodes, silent...)
		held = append(held, slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !slices.Contains(silent, p.Spec.NodeName) })...)
	}
	if len(held) == 0 {
		return nil
	}
	slices.Sort(nodes)
	return fmt.Errorf("%w: pods can't be stopped: %s%s", ErrQuorum, described(held), remedy(slices.Compact(nodes)))
}

func (q Quorum) podsOf(ctx context.Context, app string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := q.Client.List(ctx, pods, client.InNamespace(q.Namespace), client.MatchingLabels{"app": app}, client.Limit(maxPods)); err != nil {
		return nil, fmt.Errorf("listing pods of %s: %w", app, err)
	}
	return pods.Items, nil
}

// silent are the nodes of pods that don't answer, sorted. Of those that can't be read nothing is known; pods of one that is gone are removed by themselves.
func (q Quorum) silent(ctx context.Context, pods []corev1.Pod) []string {
	silent := map[string]bool{}
	for _, p := range pods {
		node := &corev1.Node{}
		if p.Spec.NodeName != "" && q.Client.Get(ctx, client.ObjectKey{Name: p.Spec.NodeName}, node) == nil && unreachable(node) {
			silent[node.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(silent))
}

// unreachable says whether the kubelet of a node tells nothing, and nobody has said that its machine is off, which has its pods removed.
func unreachable(node *corev1.Node) bool {
	off := func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }
	down := func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	}
	return slices.ContainsFunc(node.Status.Conditions, down) && !slices.ContainsFunc(node.Spec.Taints, off)
}

// described names pods with their nodes.
func described(pods []corev1.Pod) string {
	var list []string
	for _, p := range pods {
		text := "pod " + p.Name
		if p.Spec.NodeName != "" {
			text += " on node " + p.Spec.NodeName
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// remedy is for nodes that don't answer; empty: there is none.
func remedy(nodes []string) string {
	if len(nodes) == 0 {
		return ""
	}
	all := strings.Join(nodes, " ")
	return fmt.Sprintf("; not Ready: %s. Once you know that the machines are off, run `kubectl delete node %s`, or `kubectl taint node %s %s=nodeshutdown:NoExecute` if they come back later; "+
		"if they only restart, wait until they are Ready", strings.Join(nodes, ", "), all, all, corev1.TaintNodeOutOfService)
}
