package etcd

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/kube/read"
)

// Keys of the marker.
const (
	// foundedKey is a file for reset-member, which takes any content but notFounded for a yes. Older versions wrote no other.
	foundedKey, isFounded, notFounded = "founded", "true", "false"
	// clusterKey is the UID of the HostedControlPlane; older versions wrote none.
	clusterKey = "cluster"
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
	marker, err := c.marker(ctx)
	if err != nil {
		return false, err
	}
	if marker != nil && counts(ctx.HCP, marker) {
		return true, nil
	}
	report := &hyperv1.ControlPlaneComponent{}
	if err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: c.name}, report); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading ControlPlaneComponent %s: %w", c.name, err)
	}
	return report.Status.Version != "", nil
}

// marker is the ConfigMap, nil where there is none.
func (c cluster) marker(ctx component.WorkloadContext) (*corev1.ConfigMap, error) {
	return read.Optional(ctx.Context, ctx.Reader, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: c.name + "-founded"}, &corev1.ConfigMap{})
}

// counts says whether a marker is about this control plane. A backup of the namespace, as Velero makes them, brings that of an earlier one back, before the
// HostedControlPlane. It is no news of members that are to load a snapshot: their data is gone. Without a snapshot it counts, as volumes may have come back, too,
// and a member without one must not vote.
func counts(hcp *hyperv1.HostedControlPlane, marker *corev1.ConfigMap) bool {
	if marker.Data[foundedKey] == notFounded {
		return false
	}
	of := marker.Data[clusterKey]
	if of == "" && marker.CreationTimestamp.After(hcp.CreationTimestamp.Time) || of != "" && of == string(hcp.UID) {
		return true
	}
	return hcp.Spec.Etcd.Managed == nil || len(hcp.Spec.Etcd.Managed.Storage.RestoreSnapshotURL) == 0
}

// marked says whether there is a marker: one that doesn't count is rewritten and not deleted, as it isn't ours and members would read it.
func (c cluster) marked(ctx component.WorkloadContext) (bool, error) {
	if founded, err := c.founded(ctx); founded || err != nil {
		return founded, err
	}
	marker, err := c.marker(ctx)
	return marker != nil && !c.volatile(ctx.HCP), err
}

// adaptFounded writes whose marker it is, and what it says.
func (c cluster) adaptFounded(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	founded, err := c.founded(ctx)
	if err != nil {
		return err
	}
	cm.Data = map[string]string{foundedKey: notFounded, clusterKey: string(ctx.HCP.UID)}
	if founded {
		cm.Data[foundedKey] = isFounded
	}
	return nil
}
