package pki

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/nodetrust"
	counted "hcp.internal/platform/internal/kube/apply" // its name is taken in this package
	"hcp.internal/platform/internal/kube/outcome"
)

// parallelWrites bounds how many requests a wave has in flight: enough to hide the latency of an API server under load, few enough not to add to
// that load when fifteen control planes start at once.
const parallelWrites = 8

// Reconciler plans with PlanFor, and stores what is planned. It is the only writer of these Secrets and ConfigMaps.
type Reconciler struct {
	Client client.Client // reads may come from a cache
	Owner  string        // field owner
	Clock  clock.PassiveClock
	Keys   KeySource
	Rand   io.Reader
	// ClockErr says why the clock can't be believed; nil: it always can. Nothing is issued then: with a clock that is ahead every certificate would be
	// replaced, by one that is not valid yet.
	ClockErr func() error

	last lastPlan
}

// ErrOutdated says that something changed between reading and writing. The next pass sees it.
var ErrOutdated = fmt.Errorf("read from an outdated cache: %w", outcome.ErrStale)

// Plan is what brings the namespace from what was observed to spec. It is PlanFor with the time and the keys of the process, and remembers
// a plan that had nothing to write.
func (r *Reconciler) Plan(spec Spec, obs Observed) Plan {
	if spec.Disabled {
		return Plan{}
	}
	now := r.Clock.Now()
	state := stateOf(spec, obs)
	if plan, ok := r.last.plan(state, now); ok {
		return plan
	}
	plan := PlanFor(spec, obs, Source{Now: now, Keys: r.Keys, Rand: r.Rand})
	if err := r.clockErr(); err != nil && plan.issues() {
		return Plan{Problems: append(plan.Problems, fmt.Errorf("no certificates are issued: %w", err)), RecheckAfter: minRecheck}
	}
	if plan.Empty() {
		r.last.remember(state, plan, now)
	}
	return plan
}

// Apply carries a plan out. The error says what could not be written.
func (r *Reconciler) Apply(ctx context.Context, plan Plan) error {
	for _, wave := range [][]Write{plan.Authorities, plan.Leaves, plan.Copies} {
		if err := r.write(ctx, wave); err != nil {
			return err
		}
	}
	for _, s := range plan.Delete {
		uid := s.UID
		counted.Count("Secret", "delete", r.Owner)
		if err := r.Client.Delete(ctx, s, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting secret %s/%s: %w", s.Namespace, s.Name, err)
		}
	}
	return nil
}

func (r *Reconciler) clockErr() error {
	if r.ClockErr == nil {
		return nil
	}
	return r.ClockErr()
}

// RequeueAfter is the plan's recheck time with a bound, so that a clock that was set right is noticed within a day.
func (p Plan) RequeueAfter() time.Duration {
	if p.RecheckAfter == 0 {
		return 0
	}
	return min(p.RecheckAfter, 24*time.Hour)
}

// Observe reads what the plan may look at, object by object, because the reader may know of writes that a list does not show yet.
func Observe(ctx context.Context, reader client.Reader, spec Spec) (Observed, error) {
	obs := Observed{Secrets: map[string]*corev1.Secret{}, ConfigMaps: map[string]*corev1.ConfigMap{}}
	if spec.Disabled {
		return obs, nil
	}
	for _, name := range spec.secretNames() {
		s := &corev1.Secret{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: spec.Namespace, Name: name}, s)
		if client.IgnoreNotFound(err) != nil {
			return Observed{}, fmt.Errorf("reading secret %s/%s: %w", spec.Namespace, name, err)
		}
		if err == nil {
			obs.Secrets[name] = s
		}
	}
	for _, name := range spec.configMapNames() {
		cm := &corev1.ConfigMap{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: spec.Namespace, Name: name}, cm)
		if client.IgnoreNotFound(err) != nil {
			return Observed{}, fmt.Errorf("reading config map %s/%s: %w", spec.Namespace, name, err)
		}
		if err == nil {
			obs.ConfigMaps[name] = cm
		}
	}
	return obs, nil
}

// write stores a wave. An object that was not there is created by POST and one that was there is updated with its resourceVersion, never applied by
// force: a stale read must not replace an authority or a key that is already trusted.
func (r *Reconciler) write(ctx context.Context, wave []Write) error {
	log := ctrl.LoggerFrom(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelWrites)
	for _, w := range wave {
		group.Go(func() error {
			obj := w.object()
			var err error
			kind, verb := "ConfigMap", "update"
			if w.Secret != nil {
				kind = "Secret"
			}
			if obj.GetResourceVersion() == "" {
				verb = "create"
				err = r.Client.Create(ctx, obj, client.FieldOwner(r.Owner))
			} else {
				err = r.Client.Update(ctx, obj, client.FieldOwner(r.Owner))
			}
			counted.Count(kind, verb, r.Owner)
			switch {
			case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
				return fmt.Errorf("writing %s: %w", w.name(), ErrOutdated)
			case err != nil:
				return fmt.Errorf("writing %s: %w", w.name(), err)
			}
			log.Info("wrote", "object", w.name(), "because", w.Reason)
			return nil
		})
	}
	return group.Wait()
}

func (w Write) object() client.Object {
	if w.Secret != nil {
		return w.Secret
	}
	return w.ConfigMap
}

func (w Write) name() string {
	if w.Secret != nil {
		return "secret " + w.Secret.Namespace + "/" + w.Secret.Name
	}
	return "config map " + w.ConfigMap.Namespace + "/" + w.ConfigMap.Name
}

// secretNames are all Secrets that PlanFor looks at.
func (s Spec) secretNames() []string {
	names := append([]string{names.ServiceAccountKey, CustomAdminKubeconfig}, s.NamedCertificates...)
	for _, a := range s.authorities() {
		names = append(names, a.secret)
	}
	leaves, err := s.leaves()
	if err == nil {
		for _, l := range leaves {
			names = append(names, l.secret)
		}
	}
	if s.UnmanagedEtcd {
		names = append(names, EtcdClient)
	}
	for _, k := range s.kubeconfigs() {
		names = append(names, k.secret)
	}
	return names
}

// configMapNames are all ConfigMaps that PlanFor looks at.
func (s Spec) configMapNames() []string {
	names := []string{RootCABundle, AggregatorCABundle, KonnectivityCABundle, KubeletCABundle, ClientCABundle, TotalClientCABundle, EtcdCABundle, EtcdMetricsCABundle, nodetrust.ConfigMap}
	if s.Payload != nil {
		names = append(names, OAuthCABundle, observedIngressCA)
	}
	if s.ClientCA != "" {
		names = append(names, s.ClientCA)
	}
	return names
}
