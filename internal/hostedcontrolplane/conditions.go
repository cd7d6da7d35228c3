package hostedcontrolplane

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	"hcp.internal/platform/internal/controlplane/etcd/defrag"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pause"
)

const (
	// etcdRunningReason is that of an etcd which is not ours to watch.
	etcdRunningReason = "EtcdRunning"
	// certificatesReason is that of Degraded when a certificate authority or key needs a person.
	certificatesReason = "CertificatesNotReconciled"
	// maxListed bounds how many names a message lists.
	maxListed = 10
)

// ownedConditions are computed on every pass, in this order: later ones look at earlier ones. Nobody else sets them.
var ownedConditions = []func(Observed, []metav1.Condition) metav1.Condition{
	validConfiguration,
	etcdAvailable,
	apiServerAvailable,
	degraded,
	infrastructureReady,
	externalDNSReachable,
	validReleaseInfo,
	validIDPConfiguration,
	reconciliationActive,
	available,
}

func asExpected(kind string) metav1.Condition {
	return conditions.True(kind, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
}

func statusUnknown(kind, message string) metav1.Condition {
	return conditions.Unknown(kind, hyperv1.StatusUnknownReason, message)
}

func validConfiguration(obs Observed, _ []metav1.Condition) metav1.Condition {
	if obs.Invalid != nil {
		return conditions.False(hyperv1.ValidHostedControlPlaneConfiguration, hyperv1.InsufficientClusterCapabilitiesReason, obs.Invalid.Error())
	}
	return asExpected(hyperv1.ValidHostedControlPlaneConfiguration)
}

func etcdAvailable(obs Observed, _ []metav1.Condition) metav1.Condition {
	kind := hyperv1.EtcdAvailable
	if obs.HCP.Spec.Etcd.ManagementType == hyperv1.Unmanaged {
		return conditions.True(kind, etcdRunningReason, "etcd is managed by the user and not watched")
	}
	// The main etcd comes first: without it the others don't matter.
	for _, etcd := range append([]etcdShard{{name: names.Etcd, workload: obs.Etcd, obstacles: obs.EtcdClaims}}, obs.EtcdShards...) {
		if reason, message := lacksQuorum(etcd); reason != "" {
			return conditions.False(kind, reason, message)
		}
	}
	for _, space := range obs.EtcdSpaces {
		if space.Full {
			return conditions.False(kind, hyperv1.EtcdDatabaseFullReason, fullMessage(space))
		}
	}
	cond := asExpected(kind)
	cond.Reason = hyperv1.EtcdQuorumAvailableReason
	return cond
}

// snapshotRestored is True once all members of an etcd that began with a snapshot have served: from then on one that loses its data gets it from the others, and the
// snapshot, which is older than they are, is never loaded again. nil: it isn't so yet, or there is no snapshot.
func snapshotRestored(obs Observed) *metav1.Condition {
	managed := obs.HCP.Spec.Etcd.Managed
	if managed == nil || len(managed.Storage.RestoreSnapshotURL) == 0 {
		return nil
	}
	if !conditions.IsTrue(obs.HCP.Status.Conditions, hyperv1.EtcdSnapshotRestored) {
		if s := obs.Etcd; s == nil || s.Status.ObservedGeneration < s.Generation || s.Status.ReadyReplicas == 0 || s.Status.ReadyReplicas < ptr.Deref(s.Spec.Replicas, 1) {
			return nil
		}
	}
	return ptr.To(asExpected(hyperv1.EtcdSnapshotRestored))
}

// fullMessage is for the user of the hosted cluster, too, who is the only one that can do something when defragmenting was not enough. It names no sizes that
// change from look to look.
func fullMessage(space defrag.Space) string {
	return fmt.Sprintf("%s refuses writes: its database has grown to its quota of %s. History is dropped and members are defragmented; if that gives no room, delete objects in the hosted cluster",
		space.Etcd, resource.NewQuantity(space.Quota, resource.BinarySI))
}

// lacksQuorum says why an etcd can't be written to; no reason when it can.
func lacksQuorum(etcd etcdShard) (reason, message string) {
	if etcd.workload == nil {
		return hyperv1.EtcdStatefulSetNotFoundReason, fmt.Sprintf("StatefulSet %s does not exist yet", etcd.name)
	}
	want := ptr.Deref(etcd.workload.Spec.Replicas, 1)
	ready := etcd.workload.Status.ReadyReplicas
	quorum := want/2 + 1
	if ready >= quorum {
		return "", ""
	}
	message = fmt.Sprintf("%d of %d %s members are ready, %d are needed", ready, want, etcd.name, quorum)
	if len(etcd.obstacles) > 0 {
		message += ": " + strings.Join(etcd.obstacles, "; ")
	}
	return hyperv1.EtcdWaitingForQuorumReason, message
}

func apiServerAvailable(obs Observed, _ []metav1.Condition) metav1.Condition {
	kind := hyperv1.KubeAPIServerAvailable
	if obs.APIServer == nil {
		return conditions.False(kind, hyperv1.NotFoundReason, "Deployment kube-apiserver does not exist yet")
	}
	if deploymentAvailable(obs.APIServer) && ptr.Deref(obs.APIServer.Spec.Replicas, 1) > 0 {
		return asExpected(kind)
	}
	return conditions.False(kind, hyperv1.WaitingForAvailableReason,
		fmt.Sprintf("%d of %d replicas of Deployment kube-apiserver are available", obs.APIServer.Status.AvailableReplicas, ptr.Deref(obs.APIServer.Spec.Replicas, 1)))
}

func deploymentAvailable(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	})
}

func degraded(obs Observed, _ []metav1.Condition) metav1.Condition {
	kind := hyperv1.HostedControlPlaneDegraded
	var lacking []string
	for _, d := range obs.Deployments {
		if n := d.Status.UnavailableReplicas; n > 0 {
			lacking = append(lacking, fmt.Sprintf("%s has %d unavailable replicas", d.Name, n))
		}
	}
	slices.Sort(lacking)
	switch {
	case len(obs.PKIProblems) > 0:
		return conditions.True(kind, certificatesReason, errors.Join(obs.PKIProblems...).Error())
	case len(lacking) > 0:
		message := listed(lacking)
		if len(obs.Troubles) > 0 {
			message += ": " + obs.Troubles[0].Message
		}
		return conditions.True(kind, hyperv1.UnavailableReplicasReason, message)
	}
	return conditions.False(kind, hyperv1.AsExpectedReason, "")
}

func infrastructureReady(obs Observed, _ []metav1.Condition) metav1.Condition {
	kind := hyperv1.InfrastructureReady
	switch {
	case obs.InfraErr != nil:
		return conditions.False(kind, hyperv1.InfraStatusFailureReason, obs.InfraErr.Error())
	case obs.Infra.Ready():
		return asExpected(kind)
	}
	return conditions.False(kind, hyperv1.WaitingOnInfrastructureReadyReason, cmp.Or(strings.Join(obs.Infra.Missing, "; "), "the published endpoints are not known yet"))
}

// externalHostname is the DNS name under which the user publishes the API; empty when there is none.
func externalHostname(hcp *hyperv1.HostedControlPlane) string {
	strategy := endpoints.StrategyFor(hcp, hyperv1.APIServer)
	switch {
	case strategy == nil:
	case strategy.LoadBalancer != nil:
		return string(strategy.LoadBalancer.Hostname)
	case strategy.Route != nil:
		return string(strategy.Route.Hostname)
	}
	return ""
}

func externalDNSReachable(obs Observed, _ []metav1.Condition) metav1.Condition {
	kind := hyperv1.ExternalDNSReachable
	host := externalHostname(obs.HCP)
	switch {
	case host == "":
		return statusUnknown(kind, "External DNS is not configured")
	case obs.Health == nil || obs.Health.host != host:
		return statusUnknown(kind, fmt.Sprintf("%s has not been looked up yet", host))
	case obs.Health.dns != nil:
		return conditions.False(kind, hyperv1.ExternalDNSHostNotReachableReason, obs.Health.dns.Error())
	}
	return asExpected(kind)
}

func validReleaseInfo(obs Observed, _ []metav1.Condition) metav1.Condition {
	kind := hyperv1.ValidReleaseInfo
	if err := errors.Join(obs.ReleaseErr, obs.UserReleaseErr); err != nil {
		return statusUnknown(kind, err.Error())
	}
	if obs.Release == nil {
		if before := conditions.Get(obs.HCP.Status.Conditions, kind); before != nil {
			return *before // not looked at in this pass
		}
		return statusUnknown(kind, "the release has not been read yet")
	}
	if len(obs.MissingImages) > 0 {
		return conditions.False(kind, hyperv1.MissingReleaseImagesReason,
			fmt.Sprintf("release %s lacks images: %s", obs.Release.Version, strings.Join(obs.MissingImages, ", ")))
	}
	return asExpected(kind)
}

// validIDPConfiguration is about who logs in by the OAuth server, which Kubernetes releases lack. Providers of OIDC are checked with the HostedCluster.
func validIDPConfiguration(obs Observed, _ []metav1.Condition) metav1.Condition {
	kind := hyperv1.ValidIDPConfiguration
	c := obs.HCP.Spec.Configuration
	switch {
	case obs.OAuth && obs.IDPProblem != nil:
		return conditions.False(kind, hyperv1.IDPConfigurationErrorReason, obs.IDPProblem.Error())
	case obs.OAuth:
		cond := asExpected(kind)
		cond.Reason = hyperv1.IDPConfigurationValidReason
		return cond
	case c == nil || c.OAuth == nil || len(c.OAuth.IdentityProviders) == 0:
		return asExpected(kind)
	case obs.Release == nil:
		if before := conditions.Get(obs.HCP.Status.Conditions, kind); before != nil {
			return *before // not looked at in this pass
		}
		return statusUnknown(kind, "the release, which may have an OAuth server, has not been read yet")
	}
	return conditions.False(kind, hyperv1.InvalidConfigurationReason,
		"spec.configuration.oauth.identityProviders: there is no OAuth server that could ask them: use type OIDC in spec.configuration.authentication")
}

func reconciliationActive(obs Observed, _ []metav1.Condition) metav1.Condition {
	kind := hyperv1.ReconciliationActive
	switch {
	case obs.Pause.Active:
		return conditions.False(kind, hyperv1.ReconciliationPausedReason, pausedMessage(obs.Pause))
	case obs.Pause.Invalid:
		cond := asExpected(kind)
		cond.Reason = hyperv1.InvalidPausedUntilValueReason
		cond.Message = fmt.Sprintf("spec.pausedUntil %q is ignored: it is neither a time like 2026-01-02T15:04:05Z nor true or false", ptr.Deref(obs.HCP.Spec.PausedUntil, ""))
		return cond
	}
	return asExpected(kind)
}

func pausedMessage(p pause.Pause) string {
	if p.Until.IsZero() {
		return "spec.pausedUntil pauses reconciliation until it is removed"
	}
	return fmt.Sprintf("spec.pausedUntil pauses reconciliation until %s", p.Until.UTC().Format(time.RFC3339))
}

// availableUntroubled is the summary. The first thing that is wrong gives reason and message; components count only until the control plane has been
// available, because afterwards the loss of one is Degraded and the API still serves.
func availableUntroubled(obs Observed, others []metav1.Condition) metav1.Condition {
	kind := hyperv1.HostedControlPlaneAvailable
	for _, source := range []string{hyperv1.ValidHostedControlPlaneConfiguration, hyperv1.InfrastructureReady} {
		if cond := conditions.Get(others, source); cond.Status == metav1.ConditionFalse {
			return conditions.False(kind, cond.Reason, cond.Message)
		}
	}
	if obs.AdminKubeconfig == nil {
		return conditions.False(kind, hyperv1.KubeconfigWaitingForCreateReason, "the kubeconfig of the administrator does not exist yet")
	}
	for _, source := range []string{hyperv1.EtcdAvailable, hyperv1.KubeAPIServerAvailable} {
		if cond := conditions.Get(others, source); cond.Status == metav1.ConditionFalse {
			return conditions.False(kind, cond.Reason, cond.Message)
		}
	}
	if obs.Health == nil {
		return conditions.False(kind, hyperv1.KASLoadBalancerNotReachableReason, fmt.Sprintf("the first health check of the API at %s:%d has not ended yet", obs.Infra.APIHost, obs.Infra.APIPort))
	}
	if obs.Health.err != nil {
		return conditions.False(kind, hyperv1.KASLoadBalancerNotReachableReason, obs.Health.err.Error())
	}
	if conditions.IsTrue(obs.HCP.Status.Conditions, kind) {
		return asExpected(kind)
	}
	var waiting []string
	for _, c := range obs.Components {
		// This process runs, whatever its own readiness probe has got round to.
		if c.Name != cpo.Name && !conditions.IsTrue(c.Status.Conditions, hyperv1.ControlPlaneComponentAvailable) {
			waiting = append(waiting, c.Name)
		}
	}
	slices.Sort(waiting)
	if len(waiting) > 0 {
		return conditions.False(kind, hyperv1.ControlPlaneComponentsNotAvailableReason, "components not available yet: "+listed(waiting)+refusal(obs.Components))
	}
	return asExpected(kind)
}

// refusal says why a component can't be written, as when a webhook or a quota refuses it: then no pod of it tells anything. It is the first by name, and
// empty where all could be. Other messages of components count replicas, which move too often to be repeated here.
func refusal(components []hyperv1.ControlPlaneComponent) string {
	first := ""
	name := ""
	for i := range components {
		c := conditions.Get(components[i].Status.Conditions, hyperv1.ControlPlaneComponentRolloutComplete)
		if c != nil && c.Status == metav1.ConditionFalse && c.Reason == component.ReconciliationErrorReason && (name == "" || components[i].Name < name) {
			name, first = components[i].Name, c.Message
		}
	}
	if name == "" {
		return ""
	}
	return fmt.Sprintf("; %s can't be written: %s", name, clip.Over(first, maxRefusal, "…"))
}

// maxRefusal bounds what is repeated of an error.
const maxRefusal = 500

// listed joins names, with a bound.
func listed(names []string) string {
	if len(names) > maxListed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), len(names)-maxListed)
	}
	return strings.Join(names, ", ")
}
