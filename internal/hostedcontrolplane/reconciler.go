package hostedcontrolplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/releaseimage"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/defrag"
	"hcp.internal/platform/internal/controlplane/kubeapiserver"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
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
	// recheckSoon is after a write that met a newer object: the event of the newer one is on its way.
	recheckSoon = 50 * time.Millisecond
)

// Reconciler keeps a control plane equal to its HostedControlPlane.
//
// It is the only writer of the HostedControlPlane's status, but for conditions and fields that belong to the hosted-cluster-config-operator, and of
// everything that it makes in the namespace.
type Reconciler struct {
	Client client.Client // cached reads, writes
	Live   client.Reader // uncached; for what is read rarely
	Clock  clock.PassiveClock

	// Components in the order of registration.
	Components []component.Component
	// EtcdShards are the components of the shards of etcd that a control plane has; they come right after etcd. nil: none.
	EtcdShards func(*hyperv1.HostedControlPlane) []component.Component
	// EtcdSpaces say how much room the databases of etcd have; nil: nobody looks.
	EtcdSpaces func() []defrag.Space
	// MissingImages are the tags that they need and a release lacks.
	MissingImages func(*release.Release) []string
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

	// Management looks at the management cluster.
	Management Management
	// Events tells users what became of the control plane; nil: nobody is told.
	Events events.Recorder
	// Ready, if set, is called after every pass that found the control plane ready.
	Ready func()
	// Context holds the settings of the process that components see; the rest is filled in here.
	Context component.WorkloadContext

	applied apply.Memory
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
func (r *Reconciler) pass(ctx context.Context, req ctrl.Request) (_ ctrl.Result, acted bool, _ error) {
	hcp := &hyperv1.HostedControlPlane{}
	if err := r.Client.Get(ctx, req.NamespacedName, hcp); err != nil {
		return ctrl.Result{}, false, client.IgnoreNotFound(err)
	}
	if !hcp.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, false, r.finalize(ctx, hcp)
	}
	if r.OperateOn != "" && r.OperateOn != releaseimage.ControlPlane(&hcp.Spec) {
		ctrl.LoggerFrom(ctx).V(1).Info("left to the operator of the other release", "release", releaseimage.ControlPlane(&hcp.Spec))
		return ctrl.Result{}, false, nil
	}
	// The finalizer makes deletion wait for us, so it is stored before anything that we would have to clean up.
	if _, err := patch.EnsureFinalizer(ctx, r.Client, hcp, Finalizer); err != nil {
		return again(false, err)
	}
	obs := Observed{HCP: hcp, Pause: pause.At(hcp.Spec.PausedUntil, r.Clock.Now())}
	renew, actErr := r.act(ctx, &obs)
	if err := r.observeState(ctx, &obs); err != nil {
		return ctrl.Result{}, false, errors.Join(actErr, fmt.Errorf("observing %s: %w", req, err))
	}
	r.checkHealth(&obs)
	if err := errors.Join(actErr, r.report(ctx, obs)); err != nil {
		return again(obs.ComponentsCurrent, err)
	}
	if r.Ready != nil && obs.HCP.Status.Ready {
		r.Ready()
	}
	return ctrl.Result{RequeueAfter: recheckAfter(obs, renew, r.Clock.Now())}, obs.ComponentsCurrent, nil
}

// finalize lets the HostedControlPlane go. Everything here is owned by it or goes with the namespace, and nothing of it lives outside of the
// management cluster, so there is nothing to wait for: least of all for the hosted API, which may be dead.
func (r *Reconciler) finalize(ctx context.Context, hcp *hyperv1.HostedControlPlane) error {
	if err := kubeapiserver.End(ctx, r.Client, hcp.Namespace); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the control plane takes longer to go") // and that is no reason for it to stay
	}
	return patch.RemoveFinalizer(ctx, r.Client, hcp, Finalizer)
}

// again turns a lost race into another pass. Everything else is an error.
func again(acted bool, err error) (ctrl.Result, bool, error) {
	if apierrors.IsConflict(err) || errors.Is(err, pki.ErrOutdated) {
		return ctrl.Result{RequeueAfter: recheckSoon}, acted, nil
	}
	return ctrl.Result{}, acted, err
}

// recheckAfter is when something changes by itself: the pause ends, a certificate is due.
func recheckAfter(obs Observed, renew time.Duration, now time.Time) time.Duration {
	after := recheckUnready
	if obs.HCP.Status.Ready {
		after = recheckReady
	}
	if !obs.Pause.Until.IsZero() {
		return max(min(obs.Pause.Left(now), time.Hour), time.Second)
	}
	if renew > 0 {
		after = min(after, renew)
	}
	if len(obs.Troubles) > 0 {
		after = min(after, recheckUnready) // pods are not watched
	}
	if rotates(obs.HCP) {
		after = min(after, recheckRotation)
	}
	return after
}

// rotates says whether kube-apiserver's encryption keys are to change. The next step waits until the last pod with the present ones has ended,
// which is no event here: pods are many, and not watched.
func rotates(hcp *hyperv1.HostedControlPlane) bool {
	spec, status := hcp.Spec.SecretEncryption, hcp.Status.SecretEncryption
	return spec != nil && spec.AESCBC != nil && (status.TargetKey.AESCBC != nil || status.ActiveKey.AESCBC == nil)
}

// act brings the world to the spec as far as what it waits for allows. It fills in what it finds on the way, and returns when a certificate is due.
func (r *Reconciler) act(ctx context.Context, obs *Observed) (renew time.Duration, err error) {
	hcp := obs.HCP
	routes, err := r.Management.Routes(ctx)
	if err != nil {
		return 0, fmt.Errorf("looking for the Route kind: %w", err)
	}
	obs.Invalid = endpoints.Validate(hcp, endpoints.Capabilities{Routes: routes})
	if obs.Pause.Active || obs.Invalid != nil {
		r.observeInfra(ctx, obs)
		return 0, nil //nolint:nilerr // because what is invalid is reported
	}
	found := make(chan releases, 1)
	go func() { found <- r.lookup(ctx, hcp) }() // while certificates are made; bounded by lookupTimeout

	applier := apply.New(r.Client, names.ControlPlaneOperator).Remembering(&r.applied)
	publishErr := r.publish(ctx, applier, hcp)
	r.observeInfra(ctx, obs)
	renew, certErr := r.certificates(ctx, obs)
	if certErr == nil && !obs.Infra.Ready() && obs.InfraErr == nil {
		// Making certificates took as long as a local load balancer needs; look again before giving up the pass.
		if r.observeInfra(ctx, obs); obs.Infra.Ready() {
			renew, certErr = r.certificates(ctx, obs)
		}
	}
	releases := <-found
	obs.ReleaseErr, obs.UserReleaseErr = releases.controlPlaneErr, releases.userErr
	if err := errors.Join(publishErr, certErr, releases.controlPlaneErr, releases.userErr); err != nil {
		return renew, err
	}
	obs.Release, obs.UserRelease = releases.controlPlane, releases.user
	obs.MissingImages = r.missingImages(hcp, obs.Release)
	if !obs.Infra.Ready() {
		return renew, nil
	}
	return renew, r.reconcileComponents(ctx, applier, obs)
}

// publish applies the Services, and lets pods of the default ServiceAccount pull images.
func (r *Reconciler) publish(ctx context.Context, applier *apply.Applier, hcp *hyperv1.HostedControlPlane) error {
	objs := []client.Object{&corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Namespace: hcp.Namespace, Name: defaultServiceAccount},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: names.PullSecret}},
	}}
	for _, svc := range endpoints.Services(hcp) {
		svc.OwnerReferences = []metav1.OwnerReference{ownerReference(hcp)}
		objs = append(objs, svc)
	}
	if err := applier.All(ctx, objs...); err != nil {
		return fmt.Errorf("publishing the API: %w", err)
	}
	return nil
}

// observeInfra reads where the API is published. It reads past the cache while an address is missing, because everything waits for it.
func (r *Reconciler) observeInfra(ctx context.Context, obs *Observed) {
	live, err := endpoints.Observe(ctx, r.Client, r.Live, obs.HCP)
	if err == nil && live.API != nil && !endpoints.StatusOf(obs.HCP, live).Ready() {
		live, err = endpoints.Observe(ctx, r.Live, r.Live, obs.HCP)
	}
	if obs.InfraErr = err; err == nil {
		obs.Infra = endpoints.StatusOf(obs.HCP, live)
	}
}

func (r *Reconciler) certificates(ctx context.Context, obs *Observed) (time.Duration, error) {
	spec, problems := pkiSpec(obs.HCP, obs.Infra, r.PKIBase)
	var err error
	if spec.TrustRolledOut, err = r.rolledOut(ctx, spec.Namespace); err != nil {
		return 0, err
	}
	plan, err := r.PKI.Reconcile(ctx, spec)
	obs.PKIProblems = append(problems, plan.Problems...)
	if err != nil {
		return 0, fmt.Errorf("storing certificates: %w", err)
	}
	return plan.RequeueAfter(), nil
}

// rolledOut says whether every component runs with its present files.
func (r *Reconciler) rolledOut(ctx context.Context, namespace string) (bool, error) {
	list := &hyperv1.ControlPlaneComponentList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return false, fmt.Errorf("listing reports of components: %w", err)
	}
	for i := range list.Items {
		if !conditions.IsTrue(list.Items[i].Status.Conditions, hyperv1.ControlPlaneComponentRolloutComplete) {
			return false, nil
		}
	}
	return len(list.Items) > 0, nil
}

// reconcileComponents runs every component, in the order of registration. One that fails stops no other.
func (r *Reconciler) reconcileComponents(ctx context.Context, applier *apply.Applier, obs *Observed) error {
	spec, _ := pkiSpec(obs.HCP, obs.Infra, r.PKIBase)
	executor := component.Executor{Client: r.Client, Apply: applier, Clock: r.Clock}
	c := r.Context
	c.Context = ctx
	troubleErr := r.observeTroubles(ctx, obs)
	c.Trouble = obs.trouble
	c.HCP, c.Release, c.UserRelease, c.Infra = obs.HCP, obs.Release, obs.UserRelease, obs.Infra
	c.Signer = clientSigner{reader: r.Client, spec: spec, source: r.pkiSource}
	c.Capabilities, c.Management = r.Management, r.Management.Facts(ctx)
	errs := []error{troubleErr}
	for _, one := range r.components(obs.HCP) {
		errs = append(errs, executor.Reconcile(c, one))
	}
	err := errors.Join(errs...)
	obs.ComponentsCurrent = err == nil
	return err
}

// components are those of one control plane, in the order in which they are reconciled.
func (r *Reconciler) components(hcp *hyperv1.HostedControlPlane) []component.Component {
	if r.EtcdShards == nil {
		return r.Components
	}
	var all []component.Component
	for _, c := range r.Components {
		all = append(all, c)
		if c.Name() == names.Etcd {
			all = append(all, r.EtcdShards(hcp)...)
		}
	}
	return all
}

func (r *Reconciler) pkiSource() pki.Source {
	return pki.Source{Now: r.Clock.Now(), Keys: r.PKI.Keys, Rand: r.PKI.Rand}
}

// checkHealth asks for the published endpoint's health once kube-apiserver is up; before that the answer is known.
func (r *Reconciler) checkHealth(obs *Observed) {
	if obs.kubeconfig == nil || obs.APIServer == nil || !deploymentAvailable(obs.APIServer) {
		return
	}
	t, err := targetOf(obs.kubeconfig)
	if err != nil {
		obs.Health = &health{err: err}
		return
	}
	obs.Health = r.Checker.Result(r.Background, t)
}

// report patches the status. It is computed on the newest status that we know, because others write conditions too.
func (r *Reconciler) report(ctx context.Context, obs Observed) error {
	newest := &hyperv1.HostedControlPlane{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(obs.HCP), newest); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := newest.DeepCopy()
	report(&newest.Status, obs, r.Clock.Now())
	obs.HCP.Status = newest.Status
	if err := patch.Status(ctx, r.Client, before, newest); err != nil {
		return err
	}
	events.Transitions(r.Events, newest, eventRules, before.Status.Conditions, newest.Status.Conditions)
	return nil
}
