package component

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// A control plane that hibernates has no pods but those of its operators. It stops in this order, and each waits for the one before:
//
//	everything else ─▶ kube-apiserver ─▶ etcd
//
// It comes back in the order of every start, since components wait for what they depend on. Services, Secrets and volumes stay.

// Hibernates says whether the control plane is to sleep. The hypershift-operator says so once the workers are gone.
func Hibernates(hcp *hyperv1.HostedControlPlane) bool {
	return hcp.Annotations[hyperv1.HibernateAnnotation] == "true" && hcp.DeletionTimestamp.IsZero()
}

// StaysAwake says whether a component of this name runs in a cluster that sleeps, too.
func StaysAwake(name string) bool { return names.StaysAwake(name) }

// hibernate comes after everything else, so that what a workload is to be does not change while it sleeps.
func hibernate(s *scope) error {
	if !Hibernates(s.ctx.HCP) || StaysAwake(s.c.name) {
		return nil
	}
	if job, ok := s.workload.(*batchv1.CronJob); ok {
		job.Spec.Suspend = ptr.To(true)
		return nil
	}
	r := replicasOf(s.workload)
	if r == nil {
		return nil
	}
	running, err := runningWorkloads(s.ctx)
	if err != nil {
		return err
	}
	if len(stillNeeding(s.c.name, running)) == 0 {
		*r = ptr.To[int32](0)
	}
	return nil
}

// stillNeeding are those of the workloads that run which a component outlives.
func stillNeeding(name string, running []string) []string {
	var needing []string
	for _, other := range running {
		switch {
		case StaysAwake(other) || IsEtcd(other) || other == name:
		case other == names.KubeAPIServer && !IsEtcd(name):
		case name == names.KubeAPIServer || IsEtcd(name):
			needing = append(needing, other)
		}
	}
	return needing
}

// runningWorkloads are the Deployments and StatefulSets of the control plane that have pods, by name.
func runningWorkloads(ctx WorkloadContext) ([]string, error) {
	ours := []client.ListOption{client.InNamespace(ctx.HCP.Namespace), client.MatchingLabels{names.ManagedByLabel: names.ControlPlaneOperator}}
	var deployments appsv1.DeploymentList
	if err := ctx.Reader.List(ctx.Context, &deployments, ours...); err != nil {
		return nil, fmt.Errorf("listing Deployments of the control plane: %w", err)
	}
	var sets appsv1.StatefulSetList
	if err := ctx.Reader.List(ctx.Context, &sets, ours...); err != nil {
		return nil, fmt.Errorf("listing StatefulSets of the control plane: %w", err)
	}
	return Running(deployments.Items, sets.Items), nil
}

// Running are the names of the workloads that have pods, or are to have some.
func Running(deployments []appsv1.Deployment, sets []appsv1.StatefulSet) []string {
	var running []string
	for i := range deployments {
		if d := &deployments[i]; d.Status.Replicas > 0 || ptr.Deref(d.Spec.Replicas, 1) > 0 {
			running = append(running, d.Name)
		}
	}
	for i := range sets {
		if s := &sets[i]; s.Status.Replicas > 0 || ptr.Deref(s.Spec.Replicas, 1) > 0 {
			running = append(running, s.Name)
		}
	}
	slices.Sort(running)
	return running
}
