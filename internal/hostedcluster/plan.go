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
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/hostedcluster/desired"
	"hcp.internal/platform/internal/hostedcluster/recovery"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/status"
	"hcp.internal/platform/internal/hostedcluster/step"
	"hcp.internal/platform/internal/netpolicy"
	"hcp.internal/platform/internal/oci/credentials"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
)

// plan is what a pass does. The zero plan does nothing.
type plan struct {
	steps []step.Step
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

// planFor decides what a pass does with a HostedCluster that is not being deleted. While a gate is closed it writes nothing but the end of a pause, and that
// the control plane sleeps or wakes. It comes back when the schedule of sleep changes something, whatever holds the cluster.
func planFor(obs *state.Observed, g status.Gates, now time.Time, o options) plan {
	p := unscheduled(obs, g, now, o)
	if left := obs.Hibernation.Left(now); left > 0 && (p.recheckAfter == 0 || p.recheckAfter > left) {
		p.recheckAfter = left + time.Second // times in annotations have whole seconds
	}
	return p
}

// unscheduled is the plan without the time at which the cluster sleeps or wakes.
func unscheduled(obs *state.Observed, g status.Gates, now time.Time, o options) plan {
	if p := pause.At(obs.HC.Spec.PausedUntil, now); p.Active {
		return pausedPlan(obs, p, now)
	}
	if held := heldPlan(obs, g, now); held != nil {
		held.steps = append(held.steps, resume(obs)...)
		return *held
	}
	p := plan{steps: steps(obs, o), recheckAfter: recovery.Recheck(obs.Etcds)}
	unheard := obs.HCP != nil && obs.HCPCondition(hyperv1.HostedControlPlaneAvailable) == nil
	if (unheard || obs.Lacking) && (p.recheckAfter == 0 || p.recheckAfter > troubleRecheck) {
		p.recheckAfter = troubleRecheck
	}
	if obs.ReleaseErr != nil && release.Temporary(obs.ReleaseErr) {
		p.recheckAfter = recheckShortest
	}
	return p
}

// heldPlan is the plan while something keeps the pass from making anything; nil: nothing does.
func heldPlan(obs *state.Observed, g status.Gates, now time.Time) *plan {
	switch mark := markSources(obs); {
	case status.Closed(g.Configuration):
		return &plan{err: fmt.Errorf("the configuration is not valid: %s", g.Configuration.Message), steps: []step.Step{mark}}
	case status.Closed(g.Supported):
		return &plan{}
	case status.Closed(g.Release) && g.Release.Reason != hyperv1.SecretNotFoundReason:
		return &plan{steps: []step.Step{mark}, recheckAfter: backoff(g.ReleaseSince, now)}
	case g.Upgrade != nil:
		return &plan{}
	case obs.Admission != nil && obs.Admission.Waits:
		return &plan{steps: []step.Step{mark}, recheckAfter: admission.Recheck}
	case obs.Namespace == nil && obs.Target == nil:
		// There is nothing to keep going yet, and nothing can be made without a release: the pull secret is missing.
		_, err := obs.Sources.PullSecret(obs.HC)
		return &plan{err: errors.Join(err, obs.ReleaseErr), steps: []step.Step{mark}}
	}
	return nil
}

// pausedPlan passes the pause on, so that the control-plane-operator stops, too, and comes back when it ends.
func pausedPlan(obs *state.Observed, p pause.Pause, now time.Time) plan {
	out := plan{}
	if obs.HCP != nil && obs.HCP.DeletionTimestamp.IsZero() {
		out.steps = append(out.steps, controlPlaneStep(desired.PausedControlPlane(obs.HC, obs.HCP)))
	}
	if hasCluster(obs) {
		out.steps = append(out.steps, clusterStep(capi.Paused(obs.CAPICluster, true)))
	}
	if !p.Until.IsZero() {
		out.recheckAfter = p.Left(now) + time.Second // times in the spec have whole seconds
	}
	return out
}

// resume passes on what no closed gate holds up: that a pause has ended, and that the control plane is to sleep or to wake. It is empty when both are as
// they are to be: what is written here is not quite what an open gate would write.
func resume(obs *state.Observed) (steps []step.Step) {
	if live := obs.HCP; live != nil && live.DeletionTimestamp.IsZero() {
		sleeps := live.Annotations[hyperv1.HibernateAnnotation] == "true"
		leaves := obs.AutoNode(live.Spec.AutoNode) != live.Spec.AutoNode
		if !ptr.Equal(live.Spec.PausedUntil, obs.HC.Spec.PausedUntil) || sleeps != obs.PutsToSleep(live.Annotations) || leaves {
			steps = append(steps, controlPlaneStep(desired.HeldControlPlane(obs)))
		}
	}
	if hasCluster(obs) && ptr.Deref(obs.CAPICluster.Spec.Paused, false) {
		steps = append(steps, clusterStep(capi.Paused(obs.CAPICluster, false)))
	}
	return steps
}

// hasCluster says whether there is a Cluster of Cluster API to pause and resume.
func hasCluster(obs *state.Observed) bool {
	return obs.CAPICluster != nil && obs.CAPICluster.DeletionTimestamp.IsZero() && capi.HasMachines(obs.HC)
}

func controlPlaneStep(hcp *hyperv1.HostedControlPlane) step.Step {
	return step.Step{Name: step.CoreHCP, Class: step.Critical, Apply: []client.Object{hcp}}
}

func clusterStep(cluster *clusterv1.Cluster) step.Step {
	return step.Step{Name: step.CAPICluster, Class: step.Critical, Apply: []client.Object{cluster}}
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
func steps(obs *state.Observed, o options) []step.Step {
	all := []step.Step{namespaceStep(obs, o)}
	if obs.Namespace != nil && !obs.Namespace.DeletionTimestamp.IsZero() {
		return all // nothing can be made in it
	}
	if obs.Namespace == nil && obs.Target == nil {
		return all
	}
	all = append(all, step.Step{Name: step.Credentials, Class: step.Critical, Apply: obs.Credentials, Err: obs.CredentialsErr})
	all = append(all, copySteps(obs)...)
	all = append(all, markSources(obs), controlPlaneStep(desired.HostedControlPlane(obs)), capiStep(obs), removeCopies(obs), publish(obs))
	all = append(all, step.Step{Name: step.Release, Class: step.Critical, Err: obs.ReleaseErr})
	if obs.Target != nil {
		all = append(all, ownCreated(obs), operatorStep(obs, o.operators), capiOperatorsStep(obs, o.operators), policies(obs, o))
	}
	if len(obs.Etcds) > 0 {
		all = append(all, recoveryStep(obs))
	}
	return all
}

func namespaceStep(obs *state.Observed, o options) step.Step {
	s := step.Step{Name: step.Namespace, Class: step.Critical}
	switch {
	case obs.Namespace != nil && !obs.Namespace.DeletionTimestamp.IsZero():
		s.Err = fmt.Errorf("namespace %s is being deleted since %s: waiting until it is gone", obs.Namespace.Name, obs.Namespace.DeletionTimestamp.UTC().Format(time.RFC3339))
		return s
	case obs.Target == nil:
		s.Err = obs.ReleaseErr
		return s // what the namespace needs is unknown: leave it
	case obs.Namespace == nil:
		s.Create = desired.NewNamespace(obs)
	}
	s.Apply = []client.Object{desired.Namespace(obs, o.clusterMonitoring)}
	return s
}

// copySteps are one step per kind of reference, in the order of references, critical ones first.
func copySteps(obs *state.Observed) []step.Step {
	var all []step.Step
	for _, ref := range sources.References(&obs.HC.Spec) {
		i := slices.IndexFunc(all, func(s step.Step) bool { return s.Name == ref.Purpose })
		if i < 0 {
			class := step.Supporting
			if ref.Critical {
				class = step.Critical
			}
			all, i = append(all, step.Step{Name: ref.Purpose, Class: class}), len(all)
		}
		err := ref.Check(obs.HC.Namespace, obs.Sources)
		if ref.Purpose == sources.PullSecret && err == nil {
			if invalid := credentials.Validate(obs.Sources[ref.Key()].Data[names.DockerConfigKey]); invalid != nil {
				err = fmt.Errorf("spec.pullSecret: Secret %s/%s: %w", obs.HC.Namespace, ref.Name, invalid)
			}
		}
		if err != nil {
			all[i].Err = errors.Join(all[i].Err, err)
			continue
		}
		copied, err := ref.Copy(names.NamespaceOf(obs.HC), obs.Sources)
		if err != nil {
			all[i].Err = errors.Join(all[i].Err, err)
			continue
		}
		if ref.Purpose == sources.TrustBundle {
			appendProxyCA(obs, copied)
		}
		all[i].Apply = append(all[i].Apply, copied)
	}
	slices.SortStableFunc(all, func(a, b step.Step) int { return int(a.Class) - int(b.Class) })
	return all
}

// appendProxyCA puts the certificates of the proxy behind the user's own in the copy of the trust bundle.
func appendProxyCA(obs *state.Observed, bundle client.Object) {
	cm, ok := bundle.(*corev1.ConfigMap)
	config := obs.HC.Spec.Configuration
	if !ok || config == nil || config.Proxy == nil || config.Proxy.TrustedCA.Name == "" {
		return
	}
	if ca := obs.Sources.ConfigMap(config.Proxy.TrustedCA.Name).Data[names.CABundleKey]; len(ca) > 0 {
		cm.Data[names.CABundleKey] = strings.TrimRight(cm.Data[names.CABundleKey], "\n") + "\n" + string(ca)
	}
}

// markSources puts our annotation on every source that exists and lacks it.
func markSources(obs *state.Observed) step.Step {
	return step.Step{Name: step.References, Class: step.Supporting, Mark: obs.Sources.Unmarked(obs.HC.Name)}
}

// removeCopies deletes copies that nothing refers to any more.
func removeCopies(obs *state.Observed) step.Step {
	stale, err := sources.Stale(&obs.HC.Spec, obs.HCP, obs.Copies)
	return step.Step{Name: step.StaleCopies, Class: step.Supporting, Delete: stale, Err: err}
}

// ownCreated makes the HostedCluster an owner of what the CLI created for it. Each of these is one that the spec refers to.
func ownCreated(obs *state.Observed) step.Step {
	return step.Step{Name: step.CreatedSecrets, Class: step.Blockable, Own: obs.Sources.Created(obs.HC)}
}

// recoveryStep replaces members of etcd that fail.
func recoveryStep(obs *state.Observed) step.Step {
	write, remove := recovery.Plan(obs.HC, obs.Etcds, recovery.Options{Image: obs.RecoveryImage, UID: obs.UID})
	return step.Step{Name: step.Recovery, Class: step.Supporting, Apply: write, Delete: remove}
}

// capiStep makes the Cluster and its infrastructure object. It is empty on platforms without Cluster API.
func capiStep(obs *state.Observed) step.Step {
	s := step.Step{Name: step.CAPICluster, Class: step.Critical}
	infra, err := capi.Infrastructure(obs.Platform, obs.HC, obs.HCP)
	if infra == nil || err != nil {
		s.Err = err
		return s
	}
	if !obs.Capabilities.ClusterAPI {
		s.Err = fmt.Errorf("platform %s needs the kinds of Cluster API, which this management cluster does not serve: run hypershift install", obs.HC.Spec.Platform.Type)
		return s
	}
	if obs.HCP == nil {
		return s // what refers to it comes after it
	}
	if err := completeInfra(obs, infra, &s); err != nil {
		s.Err = err
		return s
	}
	s.Apply = append(s.Apply, infra, capi.Cluster(obs.HC, infra))
	if obs.CAPICluster != nil && obs.HCP.Status.Initialized && !capi.Initialized(obs.CAPICluster) {
		s.Initialized = obs.CAPICluster
	}
	return s
}

// completeInfra adds what only some platforms have to their infrastructure object.
func completeInfra(obs *state.Observed, infra client.Object, s *step.Step) (err error) {
	if aware, ok := obs.Platform.(platform.PoolAware); ok {
		if err := aware.CompleteInfra(infra, obs.HC, obs.Pools); err != nil {
			return err
		}
	}
	if c, ok := obs.Platform.(platform.Companion); ok {
		if s.Apply, err = c.Companions(obs.HC, names.NamespaceOf(obs.HC)); err != nil {
			return err
		}
	}
	if k, ok := obs.Platform.(platform.InfraKeeper); ok {
		s.Ready = &step.Readiness{Infra: infra, Status: k.InfraStatus()}
	}
	return nil
}

// policies are about who reaches the control plane, and who may look at it.
func policies(obs *state.Observed, o options) step.Step {
	s := step.Step{Name: step.Policies, Class: step.Blockable}
	in := desired.PolicyInput(obs)
	want := netpolicy.For(in)
	for _, p := range want.Apply {
		s.Apply = append(s.Apply, p)
	}
	s.Apply = append(s.Apply, desired.PKIOperatorRights(obs.HC, obs.OperatorLabels)...)
	s.Apply = append(s.Apply, desired.KubeVirtStorageRights(obs)...)
	if o.clusterMonitoring {
		s.Apply = append(s.Apply, desired.PrometheusRights(obs)...)
	} else {
		s.Delete = append(s.Delete, desired.PrometheusRights(obs)...)
	}
	for _, name := range want.Delete {
		s.Delete = append(s.Delete, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: name}})
	}
	return s
}
