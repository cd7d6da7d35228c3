package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/read"
)

// StateName is the ConfigMap of the operator's namespace whose annotations say which hosted clusters are moved, and when.
const StateName = "private-capi-state"

// Annotations of ConfigMap private-capi-state.
const (
	// ModeAnnotation is "Automatic" to move all hosted clusters from before private types, one after the other; without it those that ask by
	// annotation private-capi-migrate.
	ModeAnnotation = "hypershift.openshift.io/migration-mode"
	ModeAutomatic  = "Automatic"
	// PausedAnnotation is "true" while no move may begin. One that is under way goes on to its end.
	PausedAnnotation = "hypershift.openshift.io/migration-paused"
	// LimitAnnotation is how many hosted clusters may be moved at once, from 1 to 10; without it 1.
	LimitAnnotation = "hypershift.openshift.io/migration-limit"
	// WindowAnnotation are the times of day, in UTC, at which moves may begin by themselves, as in 22:00-04:00; without it all day.
	WindowAnnotation = "hypershift.openshift.io/migration-window"
)

const (
	maxLimit = 10
	// recheckStart is when it is looked again whether a move may begin; nothing tells of the time of day, or of another one's end. Of many that wait
	// each looks less often, so that all of them together make some fifteen requests a second at most.
	recheckStart = 15 * time.Second
	recheckLast  = 5 * time.Minute
	// lookers is how many are looked at before their moves at once. A look makes hundreds of requests, and workers are for moves that are under way;
	// recheckLook is when who finds no room tries again.
	lookers     = 3
	recheckLook = time.Second
	// recheckMode is when it is looked again whether everything is to be moved by now.
	recheckMode = time.Minute
)

type starting struct {
	starting   sync.Mutex // held while a lock is taken
	mu         sync.Mutex
	kinds      []Kind
	kindsUntil time.Time
	refused    map[types.NamespacedName]refusals // those that couldn't be moved when they were looked at last
	looks      int                               // how many are being looked at
	taken      map[types.NamespacedName]string   // locks that have no journal yet
	deployed   map[types.NamespacedName]time.Time
}

// refusals are looks in a row that found the same.
type refusals struct {
	why   string
	times int
}

// Settings say which hosted clusters are moved, and when.
type Settings struct {
	Automatic bool
	Paused    bool
	Limit     int
	// From and Until are minutes since midnight, UTC; equal: all day.
	From, Until int
}

// ParseSettings reads the annotations of ConfigMap private-capi-state. An error names the annotation; nothing is begun then.
func ParseSettings(annotations map[string]string) (Settings, error) {
	s := Settings{Limit: 1, Paused: annotations[PausedAnnotation] == "true"}
	switch mode := annotations[ModeAnnotation]; mode {
	case "", "Manual":
	case ModeAutomatic:
		s.Automatic = true
	default:
		return s, fmt.Errorf("annotation %s is %q: must be %s or Manual", ModeAnnotation, mode, ModeAutomatic)
	}
	if limit, ok := annotations[LimitAnnotation]; ok {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 || n > maxLimit {
			return s, fmt.Errorf("annotation %s is %q: must be a number from 1 to %d", LimitAnnotation, limit, maxLimit)
		}
		s.Limit = n
	}
	if window, ok := annotations[WindowAnnotation]; ok {
		from, until, found := strings.Cut(window, "-")
		a, errA := time.Parse("15:04", from)
		b, errB := time.Parse("15:04", until)
		if !found || errA != nil || errB != nil {
			return s, fmt.Errorf("annotation %s is %q: must be two times of day in UTC, as in 22:00-04:00", WindowAnnotation, window)
		}
		s.From, s.Until = a.Hour()*60+a.Minute(), b.Hour()*60+b.Minute()
	}
	return s, nil
}

// open tells whether moves may begin by themselves at a time.
func (s Settings) open(now time.Time) bool {
	minute := now.UTC().Hour()*60 + now.UTC().Minute()
	switch {
	case s.From == s.Until:
		return true
	case s.From < s.Until:
		return minute >= s.From && minute < s.Until
	default:
		return minute >= s.From || minute < s.Until
	}
}

// asked says where a hosted cluster is to be moved; false: nowhere.
func asked(hc *hyperv1.HostedCluster, s Settings) (Direction, bool) {
	a := hc.Annotations
	private := a[hyperv1.PrivateCAPITypesAnnotation] == "true"
	switch {
	case a[hyperv1.PrivateCAPIHoldAnnotation] == "true" || hc.DeletionTimestamp != nil:
		return "", false
	case private && a[hyperv1.PrivateCAPIRollbackAnnotation] == "true":
		return Reverse, true
	case private || a[hyperv1.HostedClusterScopeAnnotation] != hyperv1.LegacyScope || a[hyperv1.PrivateCAPIMigrationFailedAnnotation] != "":
		return "", false
	case a[hyperv1.PrivateCAPIRollbackAnnotation] == "true":
		return "", false
	}
	return Forward, s.Automatic || a[hyperv1.PrivateCAPIMigrateAnnotation] == "true"
}

// Refused is how condition PrivateCAPIMigrationProgressing begins for a move that checks object to. Others that are held wait for others.
const Refused = "can't be moved: "

// Failed says whether the move of a hosted cluster failed, and wasn't only taken back because somebody asked for that.
func Failed(hc *hyperv1.HostedCluster) bool {
	reason := hc.Annotations[hyperv1.PrivateCAPIMigrationFailedAnnotation]
	return reason != "" && reason != string(ReasonRequested)
}

// mayStart says why the move of a hosted cluster must wait; empty: it may begin. What a person asked for is held by the number of moves alone.
// A move that failed stops those that would begin by themselves.
func mayStart(hc *hyperv1.HostedCluster, all []hyperv1.HostedCluster, s Settings, now time.Time) string {
	moving, failed := 0, []string{}
	for i := range all {
		a := all[i].Annotations
		if a[hyperv1.PrivateCAPIMigrationInProgressAnnotation] == "true" {
			moving++
		}
		if Failed(&all[i]) {
			failed = append(failed, names.BackReference(&all[i]))
		}
	}
	byHand := byHand(hc)
	slices.Sort(failed)
	switch {
	case s.Paused:
		return "annotation " + PausedAnnotation + " of ConfigMap " + StateName + " pauses all moves"
	case moving >= s.Limit:
		return fmt.Sprintf("%d of at most %d hosted clusters are being moved", moving, s.Limit)
	case !byHand && len(failed) > 0:
		return fmt.Sprintf("failed moves stop the others: look at %s, and remove annotation %s there", some(failed), hyperv1.PrivateCAPIMigrationFailedAnnotation)
	case !byHand && !s.open(now):
		return "moves begin at other times of day, see annotation " + WindowAnnotation + " of ConfigMap " + StateName
	}
	return ""
}

// settings are what ConfigMap private-capi-state says; invalid is what is wrong with it.
func (c *Controller) settings(ctx context.Context) (_ Settings, invalid, err error) {
	state, err := read.Optional(ctx, c.Direct, client.ObjectKey{Namespace: c.Namespace, Name: StateName}, &corev1.ConfigMap{})
	if err != nil {
		return Settings{}, nil, err
	}
	if state == nil {
		state = &corev1.ConfigMap{}
	}
	s, err := ParseSettings(state.Annotations)
	if err != nil {
		invalid = fmt.Errorf("ConfigMap %s/%s: %w", c.Namespace, StateName, err)
	}
	return s, invalid, nil
}

// consider begins the move of a hosted cluster, if one is asked for and nothing speaks against it.
func (c *Controller) consider(ctx context.Context, hc *hyperv1.HostedCluster) (ctrl.Result, error) {
	if hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true" && hc.Annotations[hyperv1.PrivateCAPIMigrateAnnotation] == "true" {
		// What was asked for is done. Left there it would begin another move as soon as the hosted cluster is moved back.
		return ctrl.Result{}, client.IgnoreNotFound(c.Direct.Patch(ctx, hc, patch.Annotation(hyperv1.PrivateCAPIMigrateAnnotation, nil), client.FieldOwner(fieldOwner)))
	}
	settings, invalid, err := c.settings(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	direction, wanted := asked(hc, settings)
	if why := unheeded(hc, c.Clock.Now()); !wanted && why != "" {
		return c.hold(ctx, hc, Refused+why, recheckMode)
	}
	if !wanted && hc.Annotations[hyperv1.HostedClusterScopeAnnotation] == hyperv1.LegacyScope {
		return ctrl.Result{RequeueAfter: recheckMode}, nil
	}
	if !wanted {
		return ctrl.Result{}, nil
	}
	if invalid != nil {
		return c.hold(ctx, hc, invalid.Error(), recheckStart)
	}
	// A cache may be behind, so it only says who has to wait.
	all, pools := &hyperv1.HostedClusterList{}, &hyperv1.NodePoolList{}
	if err := errors.Join(c.Cached.List(ctx, all), c.Cached.List(ctx, pools)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing HostedClusters and NodePools: %w", err)
	}
	soon := recheck(all.Items, settings)
	if why := c.waits(hc, all.Items, pools.Items, settings); why != "" {
		return c.hold(ctx, hc, why, soon)
	}
	if !c.mayLook() {
		return ctrl.Result{RequeueAfter: recheckLook}, nil
	}
	why := c.obstacle(ctx, hc, direction)
	c.looked()
	if times := c.noteRefusal(client.ObjectKeyFromObject(hc), why); why != "" {
		known := said(hc, why)
		result, err := c.hold(ctx, hc, why, max(soon, recheckRefused(times)))
		if err == nil && !known {
			c.tell(ctx, hc, false, eventHeld, why)
		}
		return result, err
	}
	if why, err = c.take(ctx, hc, pools.Items, settings); why != "" && err == nil {
		return c.hold(ctx, hc, why, soon)
	}
	return ctrl.Result{}, err // the lock is an event
}

// take locks a hosted cluster if it is its turn, which nobody else changes meanwhile: who looks at the others while one takes its lock would count it
// wrongly.
func (c *Controller) take(ctx context.Context, hc *hyperv1.HostedCluster, pools []hyperv1.NodePool, s Settings) (why string, err error) {
	c.start.starting.Lock()
	defer c.start.starting.Unlock()
	all := &hyperv1.HostedClusterList{}
	if err := c.Direct.List(ctx, all); err != nil {
		return "", fmt.Errorf("listing HostedClusters: %w", err)
	}
	if why := c.waits(hc, all.Items, pools, s); why != "" {
		return why, nil
	}
	lock := uuid.NewString()
	if err := c.lock(ctx, hc, lock); err != nil {
		return "", err
	}
	c.noteTaken(client.ObjectKeyFromObject(hc), lock)
	return "", nil
}

// waits says what the move of a hosted cluster waits for, whatever speaks against the move itself; empty: nothing.
func (c *Controller) waits(hc *hyperv1.HostedCluster, all []hyperv1.HostedCluster, pools []hyperv1.NodePool, s Settings) string {
	if why := mayStart(hc, all, s, c.Clock.Now()); why != "" {
		return why
	}
	return itsTurn(hc, all, c.turns(all, pools, s), s)
}

// hold says why a move does not begin, and looks again soon.
func (c *Controller) hold(ctx context.Context, hc *hyperv1.HostedCluster, why string, soon time.Duration) (ctrl.Result, error) {
	if err := c.report(ctx, hc, held(hc, why)); err != nil {
		return ctrl.Result{}, fmt.Errorf("%s; reporting that on the HostedCluster: %w", why, err)
	}
	return ctrl.Result{RequeueAfter: soon}, nil
}

// obstacle is what speaks against a move; empty: nothing. One that can't even be looked at holds up no other.
func (c *Controller) obstacle(ctx context.Context, hc *hyperv1.HostedCluster, direction Direction) string {
	report, err := c.Preflight(ctx, hc, direction)
	switch {
	case err != nil:
		ctrl.LoggerFrom(ctx).Error(err, "looking at a hosted cluster that is to be moved")
		return "can't be looked at: " + err.Error()
	case len(report.Refusals) > 0:
		return Refused + report.Refusals[0].String() + more(len(report.Refusals)-1)
	}
	return ""
}

// unheeded says why what a person asked for, and what is not wanted as asked tells, is not done; empty: nobody asked.
func unheeded(hc *hyperv1.HostedCluster, now time.Time) string {
	if !byHand(hc) {
		return ""
	}
	direction := Forward
	if hc.Annotations[hyperv1.PrivateCAPIRollbackAnnotation] == "true" {
		direction = Reverse
	}
	refusals := clusterSettled(Inventory{Now: now, HC: hc, Direction: direction})
	if len(refusals) == 0 {
		return ""
	}
	if refusals[0].Reason == "AlreadyMoved" {
		refusals[0].Remedy = "remove annotation " + hyperv1.PrivateCAPIRollbackAnnotation // which vetoes a move, too
	}
	return refusals[0].String()
}

// turns are the hosted clusters that are to be moved, in their order: those that somebody asked for before the others, and small ones before large
// ones, so that what goes wrong goes wrong where it matters least. Those that could not be moved lately hold nobody up.
func (c *Controller) turns(all []hyperv1.HostedCluster, pools []hyperv1.NodePool, s Settings) []types.NamespacedName {
	c.start.mu.Lock()
	defer c.start.mu.Unlock()
	return inOrder(all, pools, s, c.start.refused)
}

func inOrder(all []hyperv1.HostedCluster, pools []hyperv1.NodePool, s Settings, refused map[types.NamespacedName]refusals) []types.NamespacedName {
	type candidate struct {
		key      types.NamespacedName
		byHand   int // 0: somebody asked
		machines int32
	}
	machines := map[types.NamespacedName]int32{}
	for i := range pools {
		key := types.NamespacedName{Namespace: pools[i].Namespace, Name: pools[i].Spec.ClusterName}
		machines[key] += max(ptr.Deref(pools[i].Spec.Replicas, 0), pools[i].Status.Replicas)
	}
	var list []candidate
	for i := range all {
		hc := &all[i]
		key := client.ObjectKeyFromObject(hc)
		if _, wanted := asked(hc, s); !wanted || locked(hc) || refused[key].times > 0 {
			continue
		}
		c := candidate{key: key, machines: machines[key]}
		if !byHand(hc) {
			c.byHand = 1
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.byHand, b.byHand), cmp.Compare(a.machines, b.machines), strings.Compare(a.key.String(), b.key.String()))
	})
	keys := make([]types.NamespacedName, 0, len(list))
	for _, c := range list {
		keys = append(keys, c.key)
	}
	return keys
}

// itsTurn says who has to begin before a hosted cluster may; empty: nobody. One that is not among turns was refused lately and is looked at again.
func itsTurn(hc *hyperv1.HostedCluster, all []hyperv1.HostedCluster, turns []types.NamespacedName, s Settings) string {
	free := s.Limit
	for i := range all {
		if locked(&all[i]) {
			free--
		}
	}
	if at := slices.Index(turns, client.ObjectKeyFromObject(hc)); at >= free {
		return fmt.Sprintf("it is number %d of those that wait", at+1)
	}
	return ""
}

// byHand tells that a person asked for a move.
func byHand(hc *hyperv1.HostedCluster) bool {
	return hc.Annotations[hyperv1.PrivateCAPIMigrateAnnotation] == "true" || hc.Annotations[hyperv1.PrivateCAPIRollbackAnnotation] == "true"
}

// noteRefusal notes why a hosted cluster can't be moved, nothing if it can, and tells how often that was found in a row.
func (c *Controller) noteRefusal(key types.NamespacedName, why string) int {
	c.start.mu.Lock()
	defer c.start.mu.Unlock()
	if why == "" {
		delete(c.start.refused, key)
		return 0
	}
	if c.start.refused == nil {
		c.start.refused = map[types.NamespacedName]refusals{}
	}
	r := c.start.refused[key]
	if r.why != why {
		r = refusals{why: why}
	}
	r.times++
	c.start.refused[key] = r
	return r.times
}

// recheckRefused is when one is looked at again that was refused so often for the same reason. Changes of the HostedCluster are looked at at once.
func recheckRefused(times int) time.Duration {
	return min(recheckStart<<min(times-1, 8), recheckLast)
}

// mayLook tells that there are not too many already whose looks go on. Looks that are allowed end with looked.
func (c *Controller) mayLook() bool {
	c.start.mu.Lock()
	defer c.start.mu.Unlock()
	if c.start.looks >= lookers {
		return false
	}
	c.start.looks++
	return true
}

func (c *Controller) looked() {
	c.start.mu.Lock()
	defer c.start.mu.Unlock()
	c.start.looks--
}

// noteTaken notes a lock that this process has set, so that nobody looks a second time whether it may be there; empty: its journal was written. A lock that
// comes after that was put back by somebody.
func (c *Controller) noteTaken(key types.NamespacedName, lock string) {
	c.start.mu.Lock()
	defer c.start.mu.Unlock()
	if c.start.taken == nil {
		c.start.taken = map[types.NamespacedName]string{}
	}
	if c.start.taken[key] = lock; lock == "" {
		delete(c.start.taken, key)
	}
}

func (c *Controller) hasTaken(key types.NamespacedName, lock string) bool {
	c.start.mu.Lock()
	defer c.start.mu.Unlock()
	return c.start.taken[key] == lock
}

// nextInTurn are those that may begin now that a move is over, if any may. They find that out by themselves.
func (c *Controller) nextInTurn(ctx context.Context, _ client.Object) []ctrl.Request {
	all, pools := &hyperv1.HostedClusterList{}, &hyperv1.NodePoolList{}
	if errors.Join(c.Cached.List(ctx, all), c.Cached.List(ctx, pools)) != nil {
		return nil // each looks again by itself, only later
	}
	turns := c.turns(all.Items, pools.Items, Settings{Automatic: true})
	var requests []ctrl.Request
	for _, key := range turns[:min(len(turns), maxLimit)] {
		requests = append(requests, ctrl.Request{NamespacedName: key})
	}
	return requests
}

// recheck is when one of those that wait looks again.
func recheck(all []hyperv1.HostedCluster, s Settings) time.Duration {
	waiting := 0
	for i := range all {
		if _, wanted := asked(&all[i], s); wanted {
			waiting++
		}
	}
	return min(recheckStart*time.Duration(1+waiting/50), recheckLast)
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more reasons; see hypershift capi migrate --dry-run)", n)
}

// returnFor is how long after a move to private types everything stays there that a way back needs: the operator for standard types, their
// definitions and the rights to them. Who wants to go back later installs again first.
const returnFor = 24 * time.Hour

// MayReturn tells whether a hosted cluster with these annotations is being moved, is asked back, or was moved so recently that it may be asked back
// without further ado.
func MayReturn(annotations map[string]string, now time.Time) bool {
	if annotations[hyperv1.PrivateCAPIMigrationInProgressAnnotation] == "true" || annotations[hyperv1.PrivateCAPIRollbackAnnotation] == "true" {
		return true
	}
	moved, err := time.Parse(time.RFC3339, annotations[hyperv1.PrivateCAPIMovedAnnotation])
	return err == nil && now.Sub(moved) < returnFor
}
