package hostedcluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/hostedcluster/recovery"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/netpolicy"
	"hcp.internal/platform/internal/oci/credentials"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
)

// plan is what a pass does. The zero plan does nothing.
type plan struct {
	steps []step
	// err ends the pass with an error although nothing went wrong with a write: the input is not usable.
	err error
	// recheckAfter is when something may have changed that no event tells of; 0: wait for an event.
	recheckAfter time.Duration
}

// options are what the plan depends on besides the observed world.
type options struct {
	// clusterMonitoring labels namespaces for the monitoring of OpenShift.
	clusterMonitoring bool
	// operators is what is handed on to the operators of control planes.
	operators operatorSettings
}

// planFor decides what a pass does with a HostedCluster that is not being deleted. It writes nothing while a gate is closed.
func planFor(obs *observed, g gates, now time.Time, o options) plan {
	if p := pause.At(obs.hc.Spec.PausedUntil, now); p.Active {
		return pausedPlan(obs, p, now)
	}
	if closed(g.configuration) {
		return plan{err: fmt.Errorf("the configuration is not valid: %s", g.configuration.Message), steps: []step{markSources(obs)}}
	}
	if closed(g.supported) {
		return plan{}
	}
	if closed(g.release) && g.release.Reason != hyperv1.SecretNotFoundReason {
		return plan{steps: []step{markSources(obs)}, recheckAfter: backoff(g.releaseSince, now)}
	}
	if g.upgrade != nil {
		return plan{}
	}
	if obs.admission != nil && obs.admission.Waits {
		return plan{steps: []step{markSources(obs)}, recheckAfter: admission.Recheck}
	}
	if obs.namespace == nil && obs.target == nil {
		// There is nothing to keep going yet, and nothing can be made without a release: the pull secret is missing.
		_, err := obs.sources.PullSecret(obs.hc)
		return plan{err: errors.Join(err, obs.releaseErr), steps: []step{markSources(obs)}}
	}
	p := plan{steps: steps(obs, o), recheckAfter: recovery.Recheck(obs.etcds)}
	unheard := obs.hcp != nil && obs.hcpCondition(hyperv1.HostedControlPlaneAvailable) == nil
	if (unheard || obs.lacking) && (p.recheckAfter == 0 || p.recheckAfter > troubleRecheck) {
		p.recheckAfter = troubleRecheck
	}
	if left := obs.hibernation.Left(now); left > 0 && (p.recheckAfter == 0 || p.recheckAfter > left) {
		p.recheckAfter = left + time.Second // times in annotations have whole seconds
	}
	if obs.releaseErr != nil && release.Temporary(obs.releaseErr) {
		p.recheckAfter = recheckShortest
	}
	return p
}

// pausedPlan passes the pause on, so that the control-plane-operator stops, too, and comes back when it ends.
func pausedPlan(obs *observed, p pause.Pause, now time.Time) plan {
	out := plan{}
	if obs.hcp != nil && obs.hcp.DeletionTimestamp.IsZero() {
		out.steps = []step{{name: stepCoreHCP, class: critical, apply: []client.Object{pausedControlPlane(obs.hc, obs.hcp)}}}
	}
	if obs.capiCluster != nil && obs.capiCluster.DeletionTimestamp.IsZero() {
		if infra, err := capi.Infrastructure(obs.platform, obs.hc, obs.hcp); infra != nil && err == nil {
			out.steps = append(out.steps, step{name: stepCAPICluster, class: critical, apply: []client.Object{capi.Cluster(obs.hc, infra, true)}})
		}
	}
	if !p.Until.IsZero() {
		out.recheckAfter = p.Left(now) + time.Second // times in the spec have whole seconds
	}
	return out
}

// Bounds of the time between two looks at an input that is not usable.
const (
	recheckShortest = 2 * time.Second
	recheckLongest  = time.Minute
)

// backoff grows with the time that something has been wrong already: a quarter of it, within bounds.
func backoff(since, now time.Time) time.Duration {
	return min(max(now.Sub(since)/4, recheckShortest), recheckLongest)
}

// steps are all steps of a reconcile, in the order in which they run.
func steps(obs *observed, o options) []step {
	all := []step{namespaceStep(obs, o)}
	if obs.namespace != nil && !obs.namespace.DeletionTimestamp.IsZero() {
		return all // nothing can be made in it
	}
	if obs.namespace == nil && obs.target == nil {
		return all
	}
	all = append(all, step{name: stepCredentials, class: critical, apply: obs.credentials, err: obs.credentialsErr})
	all = append(all, copySteps(obs)...)
	all = append(all, markSources(obs), step{name: stepCoreHCP, class: critical, apply: []client.Object{hostedControlPlane(obs)}}, capiStep(obs), removeCopies(obs), publish(obs))
	all = append(all, step{name: stepRelease, class: critical, err: obs.releaseErr})
	if obs.target != nil {
		all = append(all, ownCreated(obs), operatorStep(obs, o.operators), capiOperatorsStep(obs, o.operators), policies(obs))
	}
	if len(obs.etcds) > 0 {
		all = append(all, recoveryStep(obs))
	}
	return all
}

func namespaceStep(obs *observed, o options) step {
	s := step{name: stepNamespace, class: critical}
	switch {
	case obs.namespace != nil && !obs.namespace.DeletionTimestamp.IsZero():
		s.err = fmt.Errorf("namespace %s is being deleted since %s: waiting until it is gone", obs.namespace.Name, obs.namespace.DeletionTimestamp.UTC().Format(time.RFC3339))
		return s
	case obs.target == nil:
		s.err = obs.releaseErr
		return s // what the namespace needs is unknown: leave it
	case obs.namespace == nil:
		s.create = newNamespace(obs)
	}
	s.apply = []client.Object{desiredNamespace(obs, o.clusterMonitoring)}
	return s
}

// copySteps are one step per kind of reference, in the order of references, critical ones first.
func copySteps(obs *observed) []step {
	var all []step
	for _, ref := range sources.References(&obs.hc.Spec) {
		i := slices.IndexFunc(all, func(s step) bool { return s.name == ref.Purpose })
		if i < 0 {
			class := supporting
			if ref.Critical {
				class = critical
			}
			all, i = append(all, step{name: ref.Purpose, class: class}), len(all)
		}
		err := ref.Check(obs.hc.Namespace, obs.sources)
		if ref.Purpose == sources.PullSecret && err == nil {
			if invalid := credentials.Validate(obs.sources[ref.Key()].Data[names.DockerConfigKey]); invalid != nil {
				err = fmt.Errorf("spec.pullSecret: Secret %s/%s: %w", obs.hc.Namespace, ref.Name, invalid)
			}
		}
		if err != nil {
			all[i].err = errors.Join(all[i].err, err)
			continue
		}
		copied, err := ref.Copy(names.NamespaceOf(obs.hc), obs.sources)
		if err != nil {
			all[i].err = errors.Join(all[i].err, err)
			continue
		}
		if ref.Purpose == sources.TrustBundle {
			appendProxyCA(obs, copied)
		}
		all[i].apply = append(all[i].apply, copied)
	}
	slices.SortStableFunc(all, func(a, b step) int { return int(a.class) - int(b.class) })
	return all
}

// appendProxyCA puts the certificates of the proxy behind the user's own in the copy of the trust bundle.
func appendProxyCA(obs *observed, bundle client.Object) {
	cm, ok := bundle.(*corev1.ConfigMap)
	config := obs.hc.Spec.Configuration
	if !ok || config == nil || config.Proxy == nil || config.Proxy.TrustedCA.Name == "" {
		return
	}
	if ca := obs.sources.ConfigMap(config.Proxy.TrustedCA.Name).Data[names.CABundleKey]; len(ca) > 0 {
		cm.Data[names.CABundleKey] = strings.TrimRight(cm.Data[names.CABundleKey], "\n") + "\n" + string(ca)
	}
}

// markSources puts our annotation on every source that exists and lacks it.
func markSources(obs *observed) step {
	return step{name: stepReferences, class: supporting, mark: obs.sources.Unmarked(obs.hc.Name)}
}

// removeCopies deletes copies that nothing refers to any more.
func removeCopies(obs *observed) step {
	stale, err := sources.Stale(&obs.hc.Spec, obs.hcp, obs.copies)
	return step{name: stepStaleCopies, class: supporting, delete: stale, err: err}
}

// ownCreated makes the HostedCluster an owner of what the CLI created for it. Each of these is one that the spec refers to.
func ownCreated(obs *observed) step {
	return step{name: stepCreatedSecrets, class: blockable, own: obs.sources.Created(obs.hc)}
}

// recoveryStep replaces members of etcd that fail.
func recoveryStep(obs *observed) step {
	write, remove := recovery.Plan(obs.hc, obs.etcds, recovery.Options{Image: obs.recoveryImage, UID: obs.uid})
	return step{name: stepRecovery, class: supporting, apply: write, delete: remove}
}

// capiStep makes the Cluster and its infrastructure object. It is empty on platforms without Cluster API.
func capiStep(obs *observed) step {
	s := step{name: stepCAPICluster, class: critical}
	infra, err := capi.Infrastructure(obs.platform, obs.hc, obs.hcp)
	if infra == nil || err != nil {
		s.err = err
		return s
	}
	if !obs.caps.ClusterAPI {
		s.err = fmt.Errorf("platform %s needs the kinds of Cluster API, which this management cluster does not serve: run hypershift install", obs.hc.Spec.Platform.Type)
		return s
	}
	if obs.hcp == nil {
		return s // what refers to it comes after it
	}
	if err := completeInfra(obs, infra, &s); err != nil {
		s.err = err
		return s
	}
	s.apply = append(s.apply, infra, capi.Cluster(obs.hc, infra, false))
	if obs.capiCluster != nil && obs.hcp.Status.Initialized && !capi.Initialized(obs.capiCluster) {
		s.initialized = obs.capiCluster
	}
	return s
}

// completeInfra adds what only some platforms have to their infrastructure object.
func completeInfra(obs *observed, infra client.Object, s *step) (err error) {
	if aware, ok := obs.platform.(platform.PoolAware); ok {
		if err := aware.CompleteInfra(infra, obs.hc, obs.pools); err != nil {
			return err
		}
	}
	if c, ok := obs.platform.(platform.Companion); ok {
		if s.apply, err = c.Companions(obs.hc, names.NamespaceOf(obs.hc)); err != nil {
			return err
		}
	}
	if k, ok := obs.platform.(platform.InfraKeeper); ok {
		s.ready = &readiness{infra: infra, status: k.InfraStatus()}
	}
	return nil
}

func policies(obs *observed) step {
	s := step{name: stepPolicies, class: blockable}
	in := policyInput(obs)
	want := netpolicy.For(in)
	for _, p := range want.Apply {
		s.apply = append(s.apply, p)
	}
	s.apply = append(s.apply, pkiOperatorRights(obs.hc, obs.operatorLabels)...)
	for _, name := range want.Delete {
		s.delete = append(s.delete, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: name}})
	}
	return s
}
