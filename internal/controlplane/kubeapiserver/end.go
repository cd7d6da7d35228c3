package kubeapiserver

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// endGrace is how long a server may take that nobody uses any more, in seconds.
const endGrace = 1

// End ends the servers of a control plane that goes, at once. Call it while their owner still exists.
//
// A pod of kube-apiserver may take 135 s to end, for the sake of its clients. If Kubernetes' collector of garbage is the first to delete it, as it is when
// the owner goes, the kubelet waits that long and hears of no shorter time later on. So the pods are told first, and their Deployment and ReplicaSets leave
// them to us (orphans) instead of deleting them in their own way. A ReplicaSet that is being deleted makes no new pods.
func End(ctx context.Context, c client.Client, namespace string) error {
	of := []client.DeleteAllOfOption{client.InNamespace(namespace), client.MatchingLabels{"app": Name}}
	orphan := client.PropagationPolicy(metav1.DeletePropagationOrphan)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name}}
	err := errors.Join(
		client.IgnoreNotFound(c.Delete(ctx, deployment, orphan)),
		c.DeleteAllOf(ctx, &appsv1.ReplicaSet{}, append(of, orphan)...),
		c.DeleteAllOf(ctx, &corev1.Pod{}, append(of, client.GracePeriodSeconds(endGrace))...),
	)
	if err != nil {
		return fmt.Errorf("ending kube-apiserver in namespace %s: %w", namespace, err)
	}
	return nil
}
