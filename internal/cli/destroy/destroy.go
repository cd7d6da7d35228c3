// Package destroy deletes hosted clusters and waits until nothing of them is left.
//
//	finalizer of the CLI → delete → wait for the operator → what is in a cloud's account → the CLI's own Secrets → finalizer off → wait until gone
//
// The finalizer keeps the HostedCluster readable until the end, so that an interrupted run can be taken up again: it says what there is in the account.
package destroy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/kube/patch"
	releases "hcp.internal/platform/internal/release"
)

// Finalizer keeps a HostedCluster until the CLI has cleaned up after it.
const Finalizer = "openshift.io/destroy-cluster"

// ErrNotFound is returned by Cluster when there is no such HostedCluster and no infrastructure id to clean up for.
var ErrNotFound = errors.New("not found")

// defaultForceWait is how long deletion may take once the finalizers of children are off, before the HostedCluster's own
// go too: long enough for an operator that is alive to notice.
const defaultForceWait = 30 * time.Second

// Options says what to destroy and how.
type Options struct {
	Connect   connect.Flags
	Name      string
	Namespace string
	InfraID   string // for what is left when the HostedCluster is gone already
	// GracePeriod is how long the operator may take.
	GracePeriod time.Duration
	// CloudResources asks the operator to delete what the hosted cluster made in a cloud, too.
	CloudResources bool
	// Force takes finalizers off when the grace period is over. What they guarded may be left behind.
	Force bool

	Clock clock.WithTicker // nil: the real one

	// platform is the one that the command is for, as the command line writes it. A HostedCluster of another one is refused: only the command of its own
	// knows what it has in a cloud. Empty: any.
	platform string
	// account removes what the cluster has in a cloud's account, and againWithout is the command that does so when the HostedCluster is gone; nil: there is
	// nothing that this tool removes.
	account      func(context.Context) error
	againWithout string

	forceWait time.Duration // shorter in tests
}

// NewOptions returns the defaults.
func NewOptions() Options {
	return Options{Namespace: create.DefaultNamespace, GracePeriod: 10 * time.Minute, forceWait: defaultForceWait}
}

// Cluster destroys a hosted cluster and prints progress to out. It may be called again at any time, also after it was
// interrupted. A HostedCluster that doesn't exist gives ErrNotFound, unless o.InfraID names what to clean up. One that has another infrastructure is
// refused, and so is an infrastructure that another one has.
func Cluster(ctx context.Context, o Options, out io.Writer) error {
	if o.Name == "" {
		return errors.New("--name is required")
	}
	c, err := o.Connect.Client()
	if err != nil {
		return err
	}
	return cluster(ctx, o, c, out)
}

func cluster(ctx context.Context, o Options, c client.Client, out io.Writer) error {
	p := progress.New(out, o.Clock)
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
	hc := &hyperv1.HostedCluster{}
	if err := c.Get(ctx, key, hc); err != nil {
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading HostedCluster %s: %w", key, err)
		}
		if o.InfraID == "" {
			return exit.With(exit.NotFound, fmt.Errorf("HostedCluster %s: %w; check its name and --namespace, or give --infra-id to clean up what is left of it", key, ErrNotFound))
		}
		if err := checkInfra(ctx, c, o, nil); err != nil {
			return err
		}
		if o.Connect.DryRun != connect.NoDryRun {
			return preview(ctx, o, c, nil, out)
		}
		p.Printf("HostedCluster %s is gone; cleaning up for infrastructure %s", key, o.InfraID)
		return cleanUp(ctx, c, o, p)
	}
	if err := errors.Join(checkPlatform(o, hc), checkInfra(ctx, c, o, hc)); err != nil {
		return err
	}
	if o.InfraID == "" {
		o.InfraID = hc.Spec.InfraID
	}
	protected := checkProtection("HostedCluster", hc)
	if o.Connect.DryRun != connect.NoDryRun {
		return cmp.Or(preview(ctx, o, c, hc, out), protected)
	}
	if protected != nil {
		return protected
	}
	if o.CloudResources && ofKubernetes(hc) {
		p.Printf("--destroy-cloud-resources: the operator looks for no volumes and load balancers that the hosted cluster made: delete them there first")
	}
	if o.againWithout != "" {
		p.Printf("if this ends early, run it again; if HostedCluster %s is gone by then: %s", key, o.againWithout)
	}
	if err := prepare(ctx, c, o, hc); err != nil {
		return err
	}
	if hc.DeletionTimestamp.IsZero() {
		if err := c.Delete(ctx, hc, client.Preconditions{UID: &hc.UID}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting HostedCluster %s: %w", key, err)
		}
		p.Printf("deleting HostedCluster %s", key)
	}
	if err := waitReleased(ctx, c, o, p); err != nil {
		return err
	}
	if err := checkMadeAgain(ctx, c, o, hc); err != nil {
		return err
	}
	if err := cleanUp(ctx, c, o, p); err != nil {
		return err
	}
	if err := release(ctx, c, key); err != nil {
		return err
	}
	if err := waitGone(ctx, c, o, p); err != nil {
		return err
	}
	p.Printf("HostedCluster %s is destroyed", key)
	return nil
}

// ofKubernetes tells that a hosted cluster runs a Kubernetes release, whose operators remove nothing of what was made in a cloud from inside it; those of an OpenShift
// payload do. One whose release was never read has made nothing.
func ofKubernetes(hc *hyperv1.HostedCluster) bool {
	text := hc.Status.ControlPlaneVersion.Desired.Version
	if v := hc.Status.Version; text == "" && v != nil {
		text = v.Desired.Version
	}
	return releases.IsKubernetes(text)
}

// prepare makes sure that the HostedCluster stays readable, and passes on what was asked for. An object that is being
// deleted takes no new finalizer: then the operator alone decides when it goes.
func prepare(ctx context.Context, c client.Client, o Options, hc *hyperv1.HostedCluster) error {
	// The operator may write at the same time, hence the fresh read after a conflict.
	return retryConflict(ctx, c, client.ObjectKeyFromObject(hc), func(hc *hyperv1.HostedCluster) error {
		if hc.DeletionTimestamp.IsZero() {
			if _, err := patch.EnsureFinalizer(ctx, c, hc, Finalizer); err != nil {
				return err
			}
		}
		if !o.CloudResources || hc.Annotations[hyperv1.CleanupCloudResourcesAnnotation] == "true" {
			return nil
		}
		before := hc.DeepCopy()
		if hc.Annotations == nil {
			hc.Annotations = map[string]string{}
		}
		hc.Annotations[hyperv1.CleanupCloudResourcesAnnotation] = "true"
		return c.Patch(ctx, hc, client.MergeFrom(before))
	})
}

// waitReleased waits until nobody but the CLI holds the HostedCluster.
func waitReleased(ctx context.Context, c client.Client, o Options, p *progress.Printer) error {
	what := fmt.Sprintf("the operator to finish with HostedCluster %s/%s", o.Namespace, o.Name)
	look := func(ctx context.Context) (progress.State, error) { return released(ctx, c, o) }
	err := within(ctx, o.GracePeriod, func(ctx context.Context) error { return p.Until(ctx, what, look) })
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if !o.Force {
		return fmt.Errorf("%w; run it again to go on waiting, or with --force to leave behind what is held", err)
	}
	p.Printf("the grace period of %s is over: taking finalizers off", o.GracePeriod)
	if err := stripChildren(ctx, c, o, p); err != nil {
		return err
	}
	err = within(ctx, o.forceWait, func(ctx context.Context) error { return p.Until(ctx, what, look) })
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return stripHostedCluster(ctx, c, o, p)
}

func waitGone(ctx context.Context, c client.Client, o Options, p *progress.Printer) error {
	return within(ctx, o.forceWait, func(ctx context.Context) error {
		return p.Until(ctx, fmt.Sprintf("HostedCluster %s/%s to go", o.Namespace, o.Name), func(ctx context.Context) (progress.State, error) {
			hc := &hyperv1.HostedCluster{}
			err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, hc)
			if apierrors.IsNotFound(err) {
				return progress.Done(), nil
			}
			if err == nil && hc.DeletionTimestamp.IsZero() {
				return progress.Done(), nil // somebody made a new one of the same name
			}
			return progress.Waiting("finalizers %v", hc.Finalizers), err
		})
	})
}

func within(ctx context.Context, timeout time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return f(ctx)
}

// cleanUp removes what the operator doesn't know of.
func cleanUp(ctx context.Context, c client.Client, o Options, p *progress.Printer) error {
	if o.account != nil {
		if err := o.account(ctx); err != nil {
			return err
		}
	}
	return deleteSecrets(ctx, c, p, o.Namespace, o.InfraID)
}

// deleteSecrets deletes what `create cluster` made for the cluster. Most of it goes with the HostedCluster; what is left is
// what the operator never got to own.
func deleteSecrets(ctx context.Context, c client.Client, p *progress.Printer, namespace, infraID string) error {
	if infraID == "" {
		return nil
	}
	secrets, err := madeSecrets(ctx, c, namespace, infraID)
	if err != nil {
		return err
	}
	var errs []error
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if err := c.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("deleting Secret %s/%s: %w", namespace, secret.Name, err))
			continue
		}
		p.Printf("deleted Secret %s/%s", namespace, secret.Name)
	}
	return errors.Join(errs...)
}

// madeSecrets lists the Secrets that `create cluster` made.
func madeSecrets(ctx context.Context, c client.Client, namespace, infraID string) (*corev1.SecretList, error) {
	secrets := &corev1.SecretList{}
	selector := client.MatchingLabels{create.SafeToDeleteLabel: "true", create.AutoCreatedForLabel: infraID}
	// A cluster has a handful of them.
	if err := c.List(ctx, secrets, client.InNamespace(namespace), selector, client.Limit(100)); err != nil {
		return nil, fmt.Errorf("listing Secrets of infrastructure %s: %w", infraID, err)
	}
	return secrets, nil
}

// release takes the CLI's finalizer off. The operator may write at the same time, hence the fresh read after a conflict.
func release(ctx context.Context, c client.Client, key client.ObjectKey) error {
	return retryConflict(ctx, c, key, func(hc *hyperv1.HostedCluster) error {
		if hc.DeletionTimestamp.IsZero() {
			return nil // a new one of the same name; its finalizers are its own
		}
		return patch.RemoveFinalizer(ctx, c, hc, Finalizer)
	})
}

// onlyOurs says whether nobody but the CLI holds the HostedCluster.
func onlyOurs(hc *hyperv1.HostedCluster) bool {
	return len(hc.Finalizers) == 0 || len(hc.Finalizers) == 1 && controllerutil.ContainsFinalizer(hc, Finalizer)
}
