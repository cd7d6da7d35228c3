package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
)

const (
	// poll is how often it is looked whether pods have ended or run, of a hosted cluster that is being moved. After patient it is looked less and less
	// often, down to once every pollLast: what has not come by then takes its time, and each look makes some 20 requests.
	poll     = 500 * time.Millisecond
	patient  = time.Minute
	pollLast = 10 * time.Second
	// retryLast is how long is waited at most before a failed pass is tried again: what failed is looked at, and a phase ends in time.
	retryLast = 30 * time.Second
	// trying begins what is said of a step that failed.
	trying = "trying again: "
	// lockFor is how long a lock that somebody set by hand is left there, journalFor how long a journal is kept when its move is over.
	lockFor    = 10 * time.Minute
	journalFor = 7 * 24 * time.Hour
	// kindsFor is how long it is remembered which kinds there are.
	kindsFor = time.Minute
)

// Controller moves hosted clusters' objects of Cluster API. It is the only one that works on a HostedCluster that is locked.
type Controller struct {
	// Direct reaches the management cluster under the names that are stored there, uncached.
	Direct client.Client
	// Cached has the HostedClusters of all namespaces; they may be a little old.
	Cached    client.Reader
	Discovery discovery.DiscoveryInterface
	Deployer  Deployer
	Clock     clock.PassiveClock
	// Namespace is the operator's, with ConfigMap private-capi-state.
	Namespace string
	// Events tells users of moves; nil: nobody is told.
	Events events.Recorder

	start    starting
	outcomes outcome.Outcomes
}

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("privatecapimigration").
		For(&hyperv1.HostedCluster{}, builder.WithPredicates(predicate.Or(predicate.AnnotationChangedPredicate{}, predicate.GenerationChangedPredicate{}))).
		// The end of a move is the beginning of the next.
		Watches(&hyperv1.HostedCluster{}, handler.EnqueueRequestsFromMapFunc(c.nextInTurn), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false }, GenericFunc: func(event.GenericEvent) bool { return false },
			DeleteFunc: func(e event.DeleteEvent) bool { return locked(e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool { return locked(e.ObjectOld) && !locked(e.ObjectNew) },
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: maxLimit, RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](outcome.Soon, retryLast)}).
		Complete(c)
}

// Reconcile implements reconcile.Reconciler: it starts a move, or makes its next steps.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return c.outcomes.Pass(ctx, c, req, c.next)
}

func (c *Controller) next(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hc := &hyperv1.HostedCluster{}
	if err := c.Direct.Get(ctx, req.NamespacedName, hc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	ns := names.NamespaceOf(hc)
	journal, cm, err := readJournal(ctx, c.Direct, ns)
	if err != nil {
		return ctrl.Result{}, err
	}
	locked := locked(hc)
	lock := hc.Annotations[hyperv1.PrivateCAPIMigrationLockAnnotation]
	moving := journal != nil && !journal.Phase.Over()
	switch {
	case moving && journal.Lock == lock && locked && journal.Locks:
		return c.lockedAgain(ctx, hc, *journal, cm)
	case moving && journal.Locks:
		return ctrl.Result{}, c.lock(ctx, hc, journal.Lock) // which is an event
	case moving && (!locked || lock != journal.Lock):
		return c.lockAgain(ctx, hc, *journal, cm)
	case !locked && journal != nil && isProgressing(hc):
		return ctrl.Result{RequeueAfter: outcome.Soon}, c.ended(ctx, hc, *journal) // somebody died when the lock was off and the end not yet told
	case !locked:
		result, err := c.consider(ctx, hc)
		if err != nil || journal == nil {
			return result, err
		}
		return c.forget(ctx, *journal, cm, result)
	case lock == "":
		return c.strangeLock(ctx, hc)
	case !moving && (journal == nil || journal.Lock != lock):
		return c.begin(ctx, hc, lock, cm)
	}
	return c.move(ctx, hc, *journal, cm)
}

func locked(hc client.Object) bool {
	return hc.GetAnnotations()[hyperv1.PrivateCAPIMigrationInProgressAnnotation] == "true"
}

func isProgressing(hc *hyperv1.HostedCluster) bool {
	c := conditions.Get(hc.Status.Conditions, hyperv1.PrivateCAPIMigrationProgressing)
	return c != nil && c.Status == metav1.ConditionTrue
}

// lock locks a HostedCluster that is still the one that was looked at.
func (c *Controller) lock(ctx context.Context, hc *hyperv1.HostedCluster, lock string) error {
	p := patch.Metadata{ResourceVersion: hc.ResourceVersion, Annotations: map[string]*string{
		hyperv1.PrivateCAPIMigrationInProgressAnnotation: ptr.To("true"),
		hyperv1.PrivateCAPIMigrationLockAnnotation:       &lock,
	}}.Patch()
	if err := c.Direct.Patch(ctx, hc, p, client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("locking HostedCluster %s: %w", names.BackReference(hc), err)
	}
	return nil
}

// lockAgain takes over from whoever took the lock off, or named it otherwise, in the middle. What was done without it can't be trusted before the commit.
// The new lock is noted first: any process that comes to it then goes on with the same.
func (c *Controller) lockAgain(ctx context.Context, hc *hyperv1.HostedCluster, j Journal, cm *corev1.ConfigMap) (ctrl.Result, error) {
	c.tell(ctx, hc, true, eventHeld, "someone removed or changed the lock of a hosted cluster whose objects are being moved; the operator sets it again")
	j.Lock, j.Locks = uuid.NewString(), true
	if !j.Phase.committed() && j.Phase != RollBack {
		j = j.at(RollBack, c.Clock.Now())
		j.Failure, j.Message = ReasonConcurrent, "someone removed or changed the lock"
	}
	_, err := writeJournal(ctx, c.Direct, names.NamespaceOf(hc), j, cm)
	return ctrl.Result{RequeueAfter: outcome.Soon}, err
}

// lockedAgain notes that the HostedCluster has the lock. If it goes from now on, it may have been acknowledged.
func (c *Controller) lockedAgain(ctx context.Context, hc *hyperv1.HostedCluster, j Journal, cm *corev1.ConfigMap) (ctrl.Result, error) {
	j.Locks = false
	_, err := writeJournal(ctx, c.Direct, names.NamespaceOf(hc), j, cm)
	return ctrl.Result{RequeueAfter: outcome.Soon}, err
}

// forget removes the journal of a move that has been over for long, and otherwise comes back when it has been.
func (c *Controller) forget(ctx context.Context, j Journal, cm *corev1.ConfigMap, result ctrl.Result) (ctrl.Result, error) {
	left := journalFor - c.Clock.Now().Sub(j.PhaseStarted)
	if left > 0 {
		if result.RequeueAfter == 0 || left < result.RequeueAfter {
			result.RequeueAfter = left
		}
		return result, nil
	}
	if err := c.Direct.Delete(ctx, cm, client.Preconditions{UID: &cm.UID}); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("removing the journal in ConfigMap %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	return result, nil
}

// strangeLock leaves a lock alone that somebody set by hand, says so, and takes it off after a while: nobody looks after the hosted cluster meanwhile.
func (c *Controller) strangeLock(ctx context.Context, hc *hyperv1.HostedCluster) (ctrl.Result, error) {
	const key = hyperv1.PrivateCAPIMigrationInProgressAnnotation
	// The API server's clock may be ahead of the operator's, which may be set right meanwhile: no look is later than it should be then.
	if left := min(lockFor-c.Clock.Now().Sub(annotatedSince(hc, key, c.Clock.Now())), lockFor); left > 0 {
		return ctrl.Result{RequeueAfter: left}, c.report(ctx, hc, held(hc, fmt.Sprintf("annotation %s was set by hand: no operator manages the hosted cluster until the annotation is removed, "+
			"which the operator does after %d minutes; to pause the hosted cluster for longer, set spec.pausedUntil", key, int(lockFor.Minutes()))))
	}
	return ctrl.Result{}, c.takeOff(ctx, hc, "removed a lock that was set by hand: nothing of the hosted cluster is being moved")
}

// takeOff takes a lock off that is none of a move, and tells why.
func (c *Controller) takeOff(ctx context.Context, hc *hyperv1.HostedCluster, why string) error {
	c.tell(ctx, hc, true, eventHeld, why)
	p := patch.Metadata{ResourceVersion: hc.ResourceVersion, Annotations: map[string]*string{
		hyperv1.PrivateCAPIMigrationInProgressAnnotation: nil, hyperv1.PrivateCAPIMigrationLockAnnotation: nil, hyperv1.PrivateCAPIMigrationAckAnnotation: nil,
	}}.Patch()
	if err := c.Direct.Patch(ctx, hc, p, client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("taking a strange lock off HostedCluster %s: %w", names.BackReference(hc), err)
	}
	return c.report(ctx, hc, conditions.False(hyperv1.PrivateCAPIMigrationProgressing, hyperv1.MigrationNotStartedReason, ""))
}

// annotatedSince is when an annotation was written, as the API server noted it; now, if it didn't.
func annotatedSince(obj client.Object, key string, now time.Time) time.Time {
	field := fmt.Sprintf("%q:{}", "f:"+key)
	for _, m := range obj.GetManagedFields() {
		if m.FieldsV1 != nil && m.Time != nil && strings.Contains(m.FieldsV1.GetRawString(), field) {
			return m.Time.Time
		}
	}
	return now
}

// begin makes the journal of a move whose lock was just taken, or whose journal was lost. The objects, the programs and the annotations show the rest.
// A lock that this process has not taken may have come with a HostedCluster that was saved in the middle of a move: it gets another name, as nobody can tell
// who has acknowledged this one, and without a trace of a move it begins only if it could begin anyway.
func (c *Controller) begin(ctx context.Context, hc *hyperv1.HostedCluster, lock string, cm *corev1.ConfigMap) (ctrl.Result, error) {
	now, key := c.Clock.Now(), client.ObjectKeyFromObject(hc)
	taken := c.hasTaken(key, lock)
	direction := Forward
	if hc.Annotations[hyperv1.PrivateCAPIRollbackAnnotation] == "true" {
		direction = Reverse
	}
	if !taken {
		why, err := c.unfounded(ctx, hc)
		if err != nil {
			return ctrl.Result{}, err
		}
		if why != "" {
			return ctrl.Result{}, c.takeOff(ctx, hc, "removed a lock of which no move knows, and none can begin: "+why)
		}
		lock = uuid.NewString()
	}
	j := Journal{SchemaVersion: journalSchema, Lock: lock, Locks: !taken, Direction: direction, Phase: Quiesce, Started: now, PhaseStarted: now}
	if _, err := writeJournal(ctx, c.Direct, names.NamespaceOf(hc), j, cm); err != nil {
		return ctrl.Result{}, fmt.Errorf("noting the beginning of the move of HostedCluster %s: %w", names.BackReference(hc), err)
	}
	c.noteTaken(key, "")
	ctrl.LoggerFrom(ctx).Info("Starting migration for HostedCluster", "direction", direction)
	c.tell(ctx, hc, false, eventStarted, "moving the objects of Cluster API to "+groupsOf(direction))
	return ctrl.Result{RequeueAfter: outcome.Soon}, nil
}

// unfounded says why a lock without a journal is not that of a move; empty: there are traces of one, or one may begin.
func (c *Controller) unfounded(ctx context.Context, hc *hyperv1.HostedCluster) (string, error) {
	all, err := c.kinds()
	if err != nil {
		return "", err
	}
	begun, err := reader{c.Direct, all}.begun(ctx, names.NamespaceOf(hc))
	if begun || err != nil {
		return "", err
	}
	settings, invalid, err := c.settings(ctx)
	switch {
	case err != nil:
		return "", err
	case invalid != nil:
		return invalid.Error(), nil
	}
	direction, wanted := asked(hc, settings)
	if !wanted {
		return "nobody asks for it", nil
	}
	list := &hyperv1.HostedClusterList{}
	if err := c.Direct.List(ctx, list); err != nil {
		return "", fmt.Errorf("listing HostedClusters: %w", err)
	}
	others := slices.DeleteFunc(list.Items, func(other hyperv1.HostedCluster) bool { return other.UID == hc.UID })
	if why := mayStart(hc, others, settings, c.Clock.Now()); why != "" {
		return why, nil
	}
	return c.obstacle(ctx, hc, direction), nil
}

// move makes steps until something has to be waited for.
func (c *Controller) move(ctx context.Context, hc *hyperv1.HostedCluster, j Journal, cm *corev1.ConfigMap) (ctrl.Result, error) {
	key, ns := client.ObjectKeyFromObject(hc), names.NamespaceOf(hc)
	for ctx.Err() == nil {
		o, err := c.observe(ctx, hc, &j)
		if err != nil {
			// Nor could it be taken back: for that all has to be seen that is seen on the way.
			return ctrl.Result{}, errors.Join(err, c.report(ctx, hc, progress(j, Plan{Wait: "it can't be looked at: " + err.Error()})...))
		}
		p := planFor(o)
		if p.Wait != "" || !stuck(hc, j) {
			if err := c.report(ctx, hc, progress(j, p)...); err != nil {
				return ctrl.Result{}, err
			}
		}
		if slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Op == OpDeploy }) {
			c.noteDeployed(key, o.Now)
		}
		x := executor{Client: c.Direct, deployer: c.Deployer, hc: hc, now: o.Now, reason: j.Failure, direction: j.Direction}
		if err := x.run(ctx, p); err != nil {
			if p.Failure, err = c.failed(ctx, hc, j, err); err != nil {
				return ctrl.Result{}, err
			}
		}
		if j.Phase.Over() {
			return ctrl.Result{}, c.ended(ctx, hc, j)
		}
		switch {
		case p.Failure != nil:
			ctrl.LoggerFrom(ctx).Info("Migration failed, rolling back", "phase", j.Phase, "reason", p.Failure.Reason, "message", p.Failure.Message)
			c.tell(ctx, hc, true, eventVerificationFailed, fmt.Sprintf("phase %s: %s; the move is rolled back", j.Phase, p.Failure.Message))
			j = j.at(RollBack, o.Now)
			j.Failure, j.Message = p.Failure.Reason, p.Failure.Message
		case p.Next != "":
			ctrl.LoggerFrom(ctx).Info("phase of the migration completed", "phase", j.Phase, "next", p.Next)
			c.tell(ctx, hc, false, eventPhaseCompleted, fmt.Sprintf("phase %s is completed, %s begins", j.Phase, p.Next))
			j = j.at(p.Next, o.Now)
		case len(p.Steps) == 0 || p.Wait != "":
			return ctrl.Result{RequeueAfter: pollAt(o.Now.Sub(j.PhaseStarted))}, nil
		default:
			continue
		}
		if j.Machines == 0 {
			j.Machines = machinesOf(o.From)
		}
		if cm, err = writeJournal(ctx, c.Direct, ns, j, cm); err != nil {
			return ctrl.Result{}, fmt.Errorf("noting phase %s of the move of HostedCluster %s: %w", j.Phase, names.BackReference(hc), err)
		}
		if err := c.Direct.Get(ctx, key, hc); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	return ctrl.Result{}, ctx.Err()
}

// failed is why a move is taken back whose steps ended with an error. Otherwise the error is told, and tried again.
func (c *Controller) failed(ctx context.Context, hc *hyperv1.HostedCluster, j Journal, err error) (*Failure, error) {
	f := j.failed(err, c.Clock.Now())
	if f != nil && j.Phase == Commit {
		// It may have been written, and only the answer was lost.
		if err := c.Direct.Get(ctx, client.ObjectKeyFromObject(hc), hc); err != nil {
			return nil, err
		}
		if (Observed{HC: hc}).private() == j.Direction.Private() {
			f = nil
		}
	}
	switch {
	case f != nil:
		return f, nil
	case outcome.IsConflict(err) || ctx.Err() != nil:
		return nil, err
	}
	return nil, errors.Join(err, c.report(ctx, hc, progress(j, Plan{Wait: trying + err.Error()})...))
}

// noteDeployed notes when the programs of a hosted cluster were deployed last; the zero time forgets it.
func (c *Controller) noteDeployed(key types.NamespacedName, at time.Time) {
	c.start.mu.Lock()
	defer c.start.mu.Unlock()
	if c.start.deployed == nil {
		c.start.deployed = map[types.NamespacedName]time.Time{}
	}
	if c.start.deployed[key] = at; at.IsZero() {
		delete(c.start.deployed, key)
	}
}

// pollAt is when a move that waits is looked at again, so long after its phase began.
func pollAt(age time.Duration) time.Duration {
	return min(max(poll, (age-patient)/6), pollLast)
}

func machinesOf(objs []Object) (n int) {
	for _, o := range objs {
		if o.ID().Kind == "Machine" {
			n++
		}
	}
	return n
}

// kinds of the management cluster, asked for anew every now and then: somebody may have installed some.
func (c *Controller) kinds() ([]Kind, error) {
	c.start.mu.Lock()
	defer c.start.mu.Unlock()
	now := c.Clock.Now()
	if len(c.start.kinds) > 0 && now.Before(c.start.kindsUntil) {
		return c.start.kinds, nil
	}
	all, err := kinds(c.Discovery)
	if err != nil {
		return nil, err
	}
	c.start.kinds, c.start.kindsUntil = all, now.Add(kindsFor)
	return all, nil
}

// ended tells of the end of a move, once the lock is off.
func (c *Controller) ended(ctx context.Context, hc *hyperv1.HostedCluster, j Journal) error {
	c.noteDeployed(client.ObjectKeyFromObject(hc), time.Time{})
	if err := c.Direct.Get(ctx, client.ObjectKeyFromObject(hc), hc); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := c.report(ctx, hc, final(hc, j)...); err != nil {
		return err // told by the next pass
	}
	observeEnd(hc, j, c.Clock.Now())
	if j.Phase == RolledBack {
		c.tell(ctx, hc, true, eventRolledBack, fmt.Sprintf("%s: %s", j.Failure, j.Message))
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Migration completed successfully", "direction", j.Direction, "seconds", int(c.Clock.Now().Sub(j.Started).Seconds()))
	c.tell(ctx, hc, false, eventCompleted, fmt.Sprintf("the objects of Cluster API are in %s; machines could not be scaled or repaired for %s", groupsOf(j.Direction), j.window()))
	return nil
}
