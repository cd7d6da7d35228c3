package nodetrust

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observe lists the nodes, and the pods of the DaemonSet, page by page.
func (r *Reconciler) observe(ctx context.Context, obs *observed) error {
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	err := r.pages(ctx, nodes, func() {
		for i := range nodes.Items {
			obs.nodes = append(obs.nodes, nodes.Items[i].Name)
		}
	})
	if err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	pods := &corev1.PodList{}
	err = r.pages(ctx, pods, func() {
		for i := range pods.Items {
			obs.pods = append(obs.pods, seen(&pods.Items[i]))
		}
	}, client.InNamespace(namespace), client.MatchingLabels{appLabel: daemonSet})
	if err != nil {
		return fmt.Errorf("listing pods of DaemonSet %s/%s: %w", namespace, daemonSet, err)
	}
	return nil
}

func seen(p *corev1.Pod) pod {
	ready := false
	for _, c := range p.Status.Conditions {
		ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	return pod{node: p.Spec.NodeName, hash: p.Annotations[hashAnnotation], ready: ready && p.DeletionTimestamp.IsZero()}
}

func (r *Reconciler) pages(ctx context.Context, list client.ObjectList, each func(), options ...client.ListOption) error {
	for n := 0; ; n += pageSize {
		if n > maxNodes {
			return fmt.Errorf("there are more than %d", maxNodes)
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		err := r.Hosted.List(ctx, list, append(options, client.Limit(pageSize), client.Continue(list.GetContinue()))...)
		cancel()
		if err != nil {
			return err
		}
		each()
		if list.GetContinue() == "" {
			return nil
		}
	}
}
