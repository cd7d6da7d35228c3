package reencryption

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hold"
	"hcp.internal/platform/internal/encryption"
)

const (
	// fieldOwner is not that of the operator's other controllers: with one owner, applying one condition drops the other's.
	fieldOwner = "hosted-cluster-config-operator-reencryption"

	// waitingPause is how long after a look at a rollout the next one comes; failedPause after a failure.
	waitingPause = 30 * time.Second
	failedPause  = time.Minute
	// resync heals events that were lost.
	resync = time.Hour
	jitter = 0.1
)

// Reconciler moves a rotation on by one step in each pass.
type Reconciler struct {
	// Management reads the HostedControlPlane, its Secrets, and the pods of kube-apiserver: not from a cache, because a pod that
	// a cache does not show yet may not be able to read what is written.
	Management client.Client
	// Hosted reads and writes Secrets of the hosted cluster, not through a cache: they may be many, and large.
	Hosted client.Client
	Clock  clock.PassiveClock
	// Hold says why nothing is to be done, if so, and when to look again.
	Hold hold.Func

	// Watch, if there is one, sees to it that a change of a Secret that IsKey causes a pass; it is called again and again. A
	// control plane without encryption needs no watch.
	Watch func() error

	// PageSize, Chunk and Request are for tests; zero means what is right.
	PageSize int64
	Chunk    time.Duration
	Request  time.Duration
}

// Reconcile makes one pass for the HostedControlPlane of the request.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hcp, done, err := hold.Begin(ctx, r.Management, req, r.Hold, r.Clock.Now())
	if hcp == nil {
		return done, err
	}
	if !encryption.Rotates(hcp) {
		return ctrl.Result{}, nil
	}
	if r.Watch != nil {
		if err := r.Watch(); err != nil {
			return ctrl.Result{}, fmt.Errorf("watching encryption keys of %s: %w", req, err)
		}
	}
	obs, live, err := observe(ctx, r.Management, hcp)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing the encryption of %s: %w", req, err)
	}
	step := encryption.Next(obs, r.Clock.Now())
	after := waitingPause
	switch {
	case step.UpToDate:
		after = wait.Jitter(resync, jitter)
	case step.Rewrite && encryption.Promoted(hcp.Status.SecretEncryption) == encryption.PromotionDone:
		// Only when that is stored: from then on the configuration is never rebuilt with the old key first.
		step, after = r.rewrite(ctx, hcp, live, step)
	case step.Rewrite:
		after = time.Millisecond
	case step.Reason == hyperv1.ReEncryptionFailedReason:
		after = failedPause
	}
	wrote, err := r.report(ctx, hcp, step)
	if err != nil {
		return ctrl.Result{}, err
	}
	if step.UpToDate {
		if wrote {
			after = time.Millisecond // The spec may ask for the next key already.
		}
		if err := r.rewriter().forget(ctx, hcp.Namespace); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// rewrite has everything written again, for the time of one pass, and says what came of it and when to go on.
func (r *Reconciler) rewrite(ctx context.Context, hcp *hyperv1.HostedControlPlane, live encryption.LiveConfig, step encryption.Step) (encryption.Step, time.Duration) {
	target := encryption.HashOf(step.Status.TargetKey, encryption.Vault(hcp))
	out, err := r.writeAgain(ctx, hcp, target, rotationID(target, live))
	if err == nil && out.done {
		// What counts is what the servers were while it went on: a configuration that changed meanwhile starts it anew.
		now, err := encryption.ReadConfig(ctx, r.Management, hcp.Namespace)
		if err == nil && now.Version == live.Version {
			return encryption.Complete(step.Status, r.Clock.Now()), 0
		}
		return step, waitingPause
	}
	switch {
	case err != nil:
		ctrl.LoggerFrom(ctx).Error(err, "writing Secrets again", "hostedControlPlane", klog.KObj(hcp))
		step.Reason, step.Message = hyperv1.ReEncryptionFailedReason, "the hosted API could not be asked to write Secrets again; the log has the details"
		return step, failedPause
	case out.failed != "":
		step.Reason, step.Message = hyperv1.ReEncryptionFailedReason, out.failed
	case out.message != "":
		step.Message = out.message
	}
	return step, out.after
}

func (r *Reconciler) writeAgain(ctx context.Context, hcp *hyperv1.HostedControlPlane, target, rotation string) (outcome, error) {
	kinds := kindsOf(hcp)
	if len(kinds) > 1 {
		// What others would do about one kind says nothing of the other: it is ours as a whole.
		return r.writeHere(ctx, hcp, rotation, kinds)
	}
	v, err := r.migrate(ctx, target, rotation)
	switch {
	case err != nil:
		return outcome{}, err
	case v == succeeded:
		return outcome{done: true}, nil
	case v == running:
		return outcome{message: "the storage version migrator of the hosted cluster writes Secrets again", after: waitingPause}, nil
	}
	return r.writeHere(ctx, hcp, rotation, kinds) // also when the migrator failed: it does not try again
}

func (r *Reconciler) writeHere(ctx context.Context, hcp *hyperv1.HostedControlPlane, rotation string, kinds []string) (outcome, error) {
	w := r.rewriter()
	w.kinds = kinds
	out, err := w.run(ctx, hcp, rotation)
	if out.after == 0 {
		out.after = time.Millisecond
	}
	return out, err
}

func (r *Reconciler) rewriter() *rewriter {
	w := &rewriter{management: r.Management, hosted: r.Hosted, clock: r.Clock, pageSize: pageSize, chunk: chunkTime, request: r.Request}
	if r.PageSize > 0 {
		w.pageSize, w.chunk = r.PageSize, r.Chunk
	}
	return w
}
