package hostedcontrolplane

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/releaseimage"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/defrag"
	"hcp.internal/platform/internal/controlplane/openshift/oauthserver/issuers"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/release"
)

// Passes without an event. Everything that matters has an event, and the health of a ready control plane is checked in the
// background; these heal lost events. With many control planes that are idle, they are what takes time.
const (
	recheckUnready = 15 * time.Second
	recheckReady   = 10 * time.Minute
	// recheckRotation is how soon the end of a pod is seen while encryption keys change.
	recheckRotation = 5 * time.Second
	// jitter spreads what is repeated.
	jitter = 0.1
)

// Reconciler keeps a control plane equal to its HostedControlPlane.
//
// It is the only writer of the HostedControlPlane's status, but for conditions and fields that belong to the hosted-cluster-config-operator, and of
// everything that it makes in the namespace.
type Reconciler struct {
	Client client.Client // cached reads, writes
	Live   client.Reader // uncached; for what is read rarely
	Clock  clock.PassiveClock

	// Components are those of a control plane, in the order in which they are reconciled. The release may be nil while it isn't known.
	Components func(*hyperv1.HostedControlPlane, *release.Release) []component.Component
	// EtcdSpaces say how much room the databases of etcd have; nil: nobody looks.
	EtcdSpaces func() []defrag.Space
	// MissingImages are the tags that they need and a release lacks.
	MissingImages func(component.WorkloadContext) ([]string, error)
	Releases      release.Provider
	Images        Images
	// OperateOn is the only control plane release that this process handles; empty means any. After an upgrade the process of the old
	// release must not undo what the new one does.
	OperateOn string

	// PKIBase holds what the process was told about certificates.
	PKIBase pki.Spec
	// PKI stores certificates.
	PKI *pki.Reconciler
	// Checker checks the published endpoint; its rounds end with Background.
	Checker    Checker
	Background context.Context

	// Inspector looks at images of operator catalogs; nil: nobody does.
	Inspector Inspector
	// Issuers asks issuers of identity providers; nil: nobody does.
	Issuers *issuers.Book

	// Management looks at the management cluster.
	Management Management
	// InCloud: a program beside this one works in a cloud.
	InCloud bool
	// Events tells users what became of the control plane; nil: nobody is told.
	Events events.Recorder
	// Ready, if set, is called after every pass that found the control plane ready.
	Ready func()
	// Context holds the settings of the process that components see; the rest is filled in here.
	Context component.WorkloadContext

	tunnel string // host:port of the konnectivity server, for tests; empty: that of the control plane
	// news: the health of the published endpoint has changed since the last pass began.
	news     atomic.Bool
	applied  apply.Memory
	outcomes outcome.Outcomes
	// rolledOutWith identifies the authorities with which a whole pass of this process has last seen every component run; empty: it has seen none yet. It isn't
	// stored: what was true before the process started, a restored backup perhaps, proves nothing of what runs now, and one more pass tells.
	rolledOutWith string
}

// Checker says what the published endpoint answered last.
type Checker interface {
	Result(ctx context.Context, t target) *health
}

// Management is what is asked about the management cluster.
type Management interface {
	component.Capabilities
	// Routes says whether route.openshift.io is served.
	Routes(ctx context.Context) (bool, error)
	// Facts are what components may know.
	Facts(ctx context.Context) component.Management
}

// Reconcile does one pass.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, _, err := r.pass(ctx, req)
	return result, err
}

// pass is Reconcile; it also says whether all components were brought to the spec.
func (r *Reconciler) pass(ctx context.Context, req ctrl.Request) (result ctrl.Result, acted bool, err error) {
	r.news.Store(false)
	result, err = r.outcomes.Pass(ctx, r, req, func(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
		result, acted, err = r.next(ctx, req)
		return result, err
	})
	return result, acted, err
}

// next is pass, before a lost race is turned into another one.
func (r *Reconciler) next(ctx context.Context, req ctrl.Request) (_ ctrl.Result, acted bool, _ error) {
	hcp := &hyperv1.HostedControlPlane{}
	if err := r.Client.Get(ctx, req.NamespacedName, hcp); err != nil {
		return ctrl.Result{}, false, client.IgnoreNotFound(err)
	}
	if !hcp.DeletionTimestamp.IsZero() {
		result, err := r.leave(ctx, hcp)
		return result, false, err
	}
	if r.OperateOn != "" && r.OperateOn != releaseimage.ControlPlane(&hcp.Spec) {
		ctrl.LoggerFrom(ctx).V(1).Info("left to the operator of the other release", "release", releaseimage.ControlPlane(&hcp.Spec))
		return ctrl.Result{}, false, nil
	}
	// The finalizer makes deletion wait for us, so it is stored before anything that we would have to clean up.
	if _, err := patch.EnsureFinalizer(ctx, r.Client, hcp, Finalizer); err != nil {
		return ctrl.Result{}, false, err
	}
	obs := Observed{HCP: hcp, Pause: pause.At(hcp.Spec.PausedUntil, r.Clock.Now())}
	roundsErr := r.rounds(ctx, &obs)
	if err := r.observeState(ctx, &obs); err != nil {
		return ctrl.Result{}, false, errors.Join(roundsErr, fmt.Errorf("observing %s: %w", req, err))
	}
	r.rememberRollout(&obs)
	if err := errors.Join(roundsErr, r.report(ctx, obs)); err != nil {
		return ctrl.Result{}, obs.ComponentsCurrent, err
	}
	if r.Ready != nil && obs.HCP.Status.Ready {
		r.Ready()
	}
	return ctrl.Result{RequeueAfter: recheckAfter(obs, r.Clock.Now())}, obs.ComponentsCurrent, nil
}

// rounds bring the control plane to its spec, as far as what it waits for allows. Each observes, plans and applies, and goes by what the one
// before it has written: Services get addresses, certificates name them, components mount certificates and hash them.
func (r *Reconciler) rounds(ctx context.Context, obs *Observed) error {
	obs.Flavour = knownFlavour(obs.HCP)
	if err := r.observeCapabilities(ctx, obs); err != nil {
		return err
	}
	if !planPublication(*obs).acts {
		r.observeInfra(ctx, obs)
		return nil
	}
	found := make(chan releases, 1)
	go func() { found <- r.lookup(ctx, obs.HCP) }() // while certificates are made; bounded by lookupTimeout

	err := r.prepare(ctx, obs)
	releases := <-found
	obs.ReleaseErr, obs.UserReleaseErr = releases.controlPlaneErr, releases.userErr
	if err := errors.Join(err, obs.ReleaseErr, obs.UserReleaseErr); err != nil {
		return err
	}
	obs.Release, obs.UserRelease = releases.controlPlane, releases.user
	if err := r.observeImages(ctx, obs); err != nil {
		return err
	}
	if now := flavourOf(obs.Release); now != obs.Flavour {
		// The first pass of a control plane: what only this flavour has is still missing.
		obs.Flavour = now
		if obs.validate(); obs.Invalid != nil {
			return nil //nolint:nilerr // because a condition says it
		}
		if err := r.prepare(ctx, obs); err != nil {
			return err
		}
	}
	r.observeIdentityProviders(ctx, obs)
	if err := r.observeCatalogs(ctx, obs); err != nil {
		return err
	}
	if err := errors.Join(r.clearLeftovers(ctx, obs), r.keepKubeadmin(ctx, obs)); err != nil {
		return err
	}
	if !obs.Infra.Ready() {
		return nil
	}
	troubleErr := errors.Join(r.admitRoutes(ctx, obs), r.keepNodeConfig(ctx, obs), r.observeRollout(ctx, obs))
	err = errors.Join(troubleErr, r.rollOut(ctx, planRollout(*obs, r.Components(obs.HCP, obs.Release), r.context(*obs))))
	obs.ComponentsCurrent = err == nil
	return err
}

// prepare is the first rounds: what components need before there are any.
func (r *Reconciler) prepare(ctx context.Context, obs *Observed) error {
	if err := r.observeRoutes(ctx, obs); err != nil {
		return err
	}
	publishErr := r.publish(ctx, planPublication(*obs))
	r.observeInfra(ctx, obs)
	certErr := r.certify(ctx, obs)
	if certErr == nil && !obs.Infra.Ready() && obs.InfraErr == nil {
		// Making certificates took as long as a local load balancer needs; look again before giving up the pass.
		if r.observeInfra(ctx, obs); obs.Infra.Ready() {
			certErr = r.certify(ctx, obs)
		}
	}
	return errors.Join(publishErr, certErr)
}

// context is what the process brings to the plans of components.
func (r *Reconciler) context(obs Observed) component.WorkloadContext {
	c := r.Context
	c.Capabilities = r.Management
	spec, _ := pkiSpec(obs.HCP, obs.Infra, r.PKIBase, r.Clock.Now())
	c.Signer = clientSigner{reader: r.Client, spec: spec, source: func() pki.Source {
		return pki.Source{Now: r.Clock.Now(), Keys: r.PKI.Keys, Rand: r.PKI.Rand}
	}}
	return c
}

// certify is the second round.
func (r *Reconciler) certify(ctx context.Context, obs *Observed) error {
	obs.Renew, obs.trust = 0, ""
	spec, problems := pkiSpec(obs.HCP, obs.Infra, r.PKIBase, r.Clock.Now())
	obs.PKIProblems = problems
	spec.Payload, spec.Undecided = payloadSpec(obs.HCP, obs.Infra, obs.Flavour), obs.Flavour == undecided
	found, err := pki.Observe(ctx, r.Client, spec)
	if err != nil {
		return fmt.Errorf("looking at certificates: %w", err)
	}
	if spec.TrustRolledOut, err = r.rolledOut(ctx, obs.HCP.Namespace, found); err != nil {
		return err
	}
	plan := r.PKI.Plan(spec, found)
	obs.PKIProblems = append(obs.PKIProblems, plan.Problems...)
	if err := r.storeCertificates(ctx, plan); err != nil {
		return err
	}
	obs.Renew, obs.trust, obs.awaitsRollout = plan.RequeueAfter(), plan.Trust(found), plan.AwaitsRollout
	return nil
}
