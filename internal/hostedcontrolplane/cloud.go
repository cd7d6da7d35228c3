package hostedcontrolplane

import (
	"context"
	"os"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/removal"
	"hcp.internal/platform/internal/kube/companion"
	"hcp.internal/platform/internal/platform/aws"
)

// cloudProgram has the libraries of clouds; see decision 57.
const cloudProgram = "hcp-cloud"

// cloudRecheck is how often it is looked whether what a control plane has in a cloud is gone.
const cloudRecheck = 5 * time.Second

// setupCloud starts the program that works in a cloud, as long as this process leads. Which cloud that is, is known by the credentials that the process was
// given; without any it costs nothing.
func (r *Reconciler) setupCloud(mgr manager.Manager, o Options) error {
	command := ""
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
		ctrl.LoggerFrom(ctx).V(1).Info("the control plane stays until what it has in the cloud is gone", "waitingFor", what)
		return ctrl.Result{RequeueAfter: cloudRecheck}, nil
	}
	return ctrl.Result{}, r.finalize(ctx, hcp)
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
