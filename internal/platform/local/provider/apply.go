package provider

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/apply"
)

// create makes the pod, or finds the one that it made before a crash. Create and not apply, because a pod that is there already must
// not be taken for a machine that has just been made.
func (r *MachineReconciler) create(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	apply.Count("Pod", "create", FieldOwner)
	made := pod.DeepCopy()
	err := r.Client.Create(ctx, made, client.FieldOwner(FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		found := &corev1.Pod{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(pod), found); err != nil {
			return nil, fmt.Errorf("reading pod %s: %w", client.ObjectKeyFromObject(pod), err)
		}
		return found, nil
	}
	if err != nil {
		return nil, fmt.Errorf("creating pod %s: %w", client.ObjectKeyFromObject(pod), err)
	}
	return made, nil
}
