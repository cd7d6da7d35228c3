package etcd

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// founded says whether the members have had a quorum once. From then on, a member without data has lost it: were it to found
// a cluster with the others, which may just be starting again, it would vote about what it has forgotten, and acknowledged
// writes could go. The answer is kept in a ConfigMap, so that it does not depend on a status.
//
// Members whose data goes with their pods may found again: when all have lost it, nothing is left to wait for.
func (c cluster) founded(ctx component.WorkloadContext) (bool, error) {
	if c.volatile(ctx.HCP) {
		return false, nil
	}
	key := client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: c.name + "-founded"}
	err := ctx.Reader.Get(ctx.Context, key, &corev1.ConfigMap{})
	if err == nil {
		return true, nil
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading ConfigMap %s: %w", key.Name, err)
	}
	key.Name = c.name
	report := &hyperv1.ControlPlaneComponent{}
	if err := ctx.Reader.Get(ctx.Context, key, report); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading ControlPlaneComponent %s: %w", c.name, err)
	}
	return report.Status.Version != "", nil
}
