package hostedcontrolplane

import (
	"context"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/removal"
	"hcp.internal/platform/internal/controlplane/openshift/clusterversionoperator"
	"hcp.internal/platform/internal/kube/companion"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/platform/aws"
)

// cloudProgram has the libraries of clouds; see decision 57.
const cloudProgram = "hcp-cloud"

// cloudRecheck is how often it is looked whether what a control plane has in a cloud is gone.
const cloudRecheck = 5 * time.Second

// setupCloud starts the program that works in a cloud, as long as this process leads. Which cloud that is, is known by the credentials that the process was
// given; without any it costs nothing.
func (r *Reconciler) setupCloud(mgr manager.Manager, o Options) error {
	var command string
	switch {
	case os.Getenv("AWS_SHARED_CREDENTIALS_FILE") != "":
		command = "control-plane"
	case os.Getenv("AZURE_CLIENT_ID") != "" && os.Getenv("AZURE_FEDERATED_TOKEN_FILE") != "":
		command = "azure-control-plane" // its links are removed before the control plane goes, which waits for nothing else
	default:
		return nil
	}
	path, err := companion.Beside(cloudProgram)
	if err != nil {
		return err
	}
	args := []string{command, "--namespace=" + o.Namespace}
	if o.Kubeconfig != "" {
		args = append(args, "--kubeconfig="+o.Kubeconfig)
	}
	r.InCloud = true
	return mgr.Add(&companion.Program{Path: path, Args: args})
}

// leave ends the control plane, once what lies outside of its namespace is gone: the tokens for that come from its API server.
func (r *Reconciler) leave(ctx context.Context, hcp *hyperv1.HostedControlPlane) (ctrl.Result, error) {
	if what := r.removing(hcp); what != "" {
		if err := r.stopVersionOperator(ctx, hcp); err != nil {
			return ctrl.Result{}, err
		}
		ctrl.LoggerFrom(ctx).V(1).Info("the control plane stays until what it has in the cloud is gone", "waitingFor", what)
		return ctrl.Result{RequeueAfter: cloudRecheck}, nil
	}
	return ctrl.Result{}, r.finalize(ctx, hcp)
}

// stopVersionOperator ends the cluster-version-operator of a payload before the config operator removes what the hosted cluster has in a cloud: it would bring
// back what goes. CVOScaledDown says that it has ended; the config operator waits for that.
func (r *Reconciler) stopVersionOperator(ctx context.Context, hcp *hyperv1.HostedControlPlane) error {
	if !removal.Asked(hcp) || knownFlavour(hcp) != openShift || conditions.IsTrue(hcp.Status.Conditions, hyperv1.CVOScaledDown) {
		return nil
	}
	d := &appsv1.Deployment{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: hcp.Namespace, Name: clusterversionoperator.Name}, d)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("reading Deployment %s, which is to end before cloud resources are removed: %w", clusterversionoperator.Name, err)
	case ptr.Deref(d.Spec.Replicas, 1) != 0:
		before := d.DeepCopy()
		d.Spec.Replicas = ptr.To[int32](0)
		if err := r.Client.Patch(ctx, d, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("scaling Deployment %s to 0 before cloud resources are removed: %w", clusterversionoperator.Name, err)
		}
		return nil
	case d.Status.ObservedGeneration < d.Generation || d.Status.Replicas != 0:
		return nil
	}
	before := hcp.DeepCopy()
	down := conditions.True(hyperv1.CVOScaledDown, hyperv1.CVOScaledDown, "the cluster-version-operator has ended, so that it brings nothing back")
	down.ObservedGeneration = hcp.Generation
	conditions.Set(&hcp.Status.Conditions, r.Clock.Now(), down)
	return patch.Status(ctx, r.Client, before, hcp)
}

// removalPatience is how long a control plane outside of AWS stays for what the hosted cluster has in a cloud. The config operator gives up a minute before, and
// says what is left.
const removalPatience = removal.Limit + time.Minute

// removing says which condition a control plane that is being deleted waits for; empty: none.
func (r *Reconciler) removing(hcp *hyperv1.HostedControlPlane) string {
	switch {
	case hcp.Spec.Platform.AWS != nil:
		if r.InCloud {
			return aws.Removing(hcp, r.Clock.Now())
		}
		return "" // without credentials nothing can be removed
	case !removal.Asked(hcp), knownFlavour(hcp) != openShift:
		return ""
	}
	if p := removal.Of(hcp, r.Clock.Now()); p.Over || p.Waited >= removalPatience {
		return ""
	}
	return hyperv1.CloudResourcesDestroyed
}
