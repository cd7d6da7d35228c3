package hostedcontrolplane

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	"hcp.internal/platform/internal/kube/conditions"
)

// awaited tells in the gap behind a pass that somebody waits for the next one: others start when etcd serves, users when the control plane is ready
// for the first time. Everything else can wait for the end of the gap, and all of it once the control plane is ready.
func (r *Reconciler) awaited(ctx context.Context, req ctrl.Request) bool {
	hcp := &hyperv1.HostedControlPlane{}
	if err := r.Client.Get(ctx, req.NamespacedName, hcp); err != nil || !hcp.DeletionTimestamp.IsZero() {
		return true
	}
	if hcp.Status.Ready {
		return false
	}
	if r.news.Load() {
		return true
	}
	reports, deployments, sets := &hyperv1.ControlPlaneComponentList{}, &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
	for _, list := range []client.ObjectList{reports, deployments, sets} {
		if err := r.Client.List(ctx, list, client.InNamespace(req.Namespace)); err != nil {
			return false // the gap is short, and the pass will tell
		}
	}
	serving := map[string]bool{}
	for i := range deployments.Items {
		serving[deployments.Items[i].Name] = deploymentAvailable(&deployments.Items[i])
	}
	for i := range sets.Items {
		serving[sets.Items[i].Name] = sets.Items[i].Status.AvailableReplicas > 0
	}
	return somethingBegan(reports.Items, serving)
}

// somethingBegan compares reports with the workloads that serve by now. It is true when one that others wait for serves and its report doesn't say so, and
// when the last of all does.
func somethingBegan(reports []hyperv1.ControlPlaneComponent, serving map[string]bool) bool {
	newly, missing := 0, 0
	for i := range reports {
		name := reports[i].Name
		switch {
		case name == cpo.Name || conditions.IsTrue(reports[i].Status.Conditions, hyperv1.ControlPlaneComponentAvailable):
		case !serving[name]:
			missing++
		case name == names.KubeAPIServer || component.IsEtcd(name):
			return true
		default:
			newly++
		}
	}
	return newly > 0 && missing == 0
}

// told has news of the published endpoint cause a pass, also in a gap.
func (r *Reconciler) told(wake func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		r.news.Store(true)
		wake(ctx)
	}
}
