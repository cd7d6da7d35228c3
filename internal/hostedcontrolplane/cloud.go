package hostedcontrolplane

import (
	"context"
	"fmt"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/aws/workers"
)

// Cloud removes what was made for a control plane in a cloud.
type Cloud interface {
	// Remove returns nil when it is done, or never will be and a condition says so.
	Remove(ctx context.Context, hcp *hyperv1.HostedControlPlane) error
}

// setupCloud starts what works in a cloud. Which one that is, is known by the credentials that the process was given; without any it costs nothing.
func (r *Reconciler) setupCloud(mgr manager.Manager) error {
	if os.Getenv("AWS_SHARED_CREDENTIALS_FILE") == "" {
		return nil
	}
	w := &workers.Reconciler{Client: mgr.GetClient(), Clock: r.Clock, NewAPI: workers.NewAPI}
	r.Cloud = w
	if err := w.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up what works in AWS: %w", err)
	}
	return nil
}

// leave ends the control plane, once what lies outside of its namespace is gone: the tokens for that come from its API server.
func (r *Reconciler) leave(ctx context.Context, hcp *hyperv1.HostedControlPlane) error {
	if r.Cloud != nil {
		if err := r.Cloud.Remove(ctx, hcp); err != nil {
			return fmt.Errorf("removing what HostedControlPlane %s has in the cloud: %w", client.ObjectKeyFromObject(hcp), err)
		}
	}
	return r.finalize(ctx, hcp)
}
