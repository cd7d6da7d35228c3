package status

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/capiproxy"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/releaseimage"
	"hcp.internal/platform/internal/controlplane/karpenter"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/hostedcluster/recovery"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/validate"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/platform/cluster"
	"hcp.internal/platform/internal/release"
)

// Messages that are wire facts or appear more than once.
const (
	messageHCPMissing       = "The hosted control plane is not found"
	messageConditionMissing = "Condition not found in the HCP"
	MessageAvailable        = "The hosted control plane is available"
	messageNotDegraded      = "The hosted cluster is not degraded"
	messageWaiting          = "Waiting for hosted control plane to be healthy"
)

// bubbled are copied from the HostedControlPlane as they are, Unknown when absent.
var bubbled = []string{
	hyperv1.ClusterVersionSucceeding, hyperv1.ClusterVersionProgressing, hyperv1.ClusterVersionReleaseAccepted,
	hyperv1.ClusterVersionUpgradeable, hyperv1.ClusterVersionAvailable,
	hyperv1.ValidHostedControlPlaneConfiguration, hyperv1.ValidReleaseInfo, hyperv1.ValidIDPConfiguration,
	hyperv1.EtcdAvailable, hyperv1.KubeAPIServerAvailable, hyperv1.InfrastructureReady, hyperv1.ExternalDNSReachable,
	hyperv1.DataPlaneConnectionAvailable, hyperv1.ControlPlaneConnectionAvailable, hyperv1.ConfigOperatorReconciliationSucceeded,
}

// bubbledIfPresent are copied while the HostedControlPlane has them (and knows their status), and removed when it has not.
var bubbledIfPresent = []string{
	hyperv1.ClusterVersionRetrievedUpdates, hyperv1.EtcdDataEncryptionUpToDate, hyperv1.NodesTrustAuthorities, encryption.KeysAvailable,
	hyperv1.EtcdBackupSucceeded, hyperv1.EtcdSnapshotRestored, hyperv1.HostedClusterRestoredFromBackup,
}

// conditionsFor computes every condition that this operator owns on a HostedCluster, except ReconciliationSucceeded, which needs the outcome
// of the pass. Those of absent are removed.
func conditionsFor(obs *state.Observed, g Gates, now time.Time) (set []metav1.Condition, absent []string) {
	sleep := hibernated(obs)
	for _, t := range bubbled {
		set = append(set, resting(sleep, fromHCP(obs, t)))
	}
	for _, t := range bubbledIfPresent {
		if c := obs.HCPCondition(t); c != nil && c.Status != metav1.ConditionUnknown {
			set = append(set, *c)
		} else {
			absent = append(absent, t)
		}
	}
	set = append(set, degraded(obs))
	if obs.HC.Spec.Etcd.ManagementType == hyperv1.Unmanaged {
		set = append(set, unmanagedEtcd(obs))
	} else {
		absent = append(absent, hyperv1.UnmanagedEtcdAvailable)
	}
	if len(obs.Etcds) > 0 {
		set = append(set, recovery.Active(obs.Etcds))
	} else {
		absent = append(absent, hyperv1.EtcdRecoveryActive)
	}
	set = append(set, g.list()...)
	set = append(set, validProxy(obs, now), platformCredentials(obs), ignitionEndpoint(obs), autoNode(obs), AllFieldsHeeded(obs))
	if obs.PrivateCAPI {
		set = append(set, capi.StorageCondition(obs.HC)) // else it is another operator's, see capi.Storage
	}
	if c := admittedCondition(obs); c != nil {
		set = append(set, *c)
	} else {
		absent = append(absent, hyperv1.ControlPlaneAdmitted)
	}
	if reporter, ok := obs.Platform.(platform.ConditionReporter); ok {
		more, none := reporter.Conditions(cluster.Input{HostedCluster: obs.HC, HostedControlPlane: obs.HCP, NodePools: obs.Pools, Objects: obs.PlatformObjects, Documents: obs.Documents})
		set, absent = append(set, more...), append(absent, none...)
	}
	if obs.Elsewhere != nil {
		set = append(set, *obs.Elsewhere)
	} else {
		absent = append(absent, hyperv1.ValidKubeVirtInfraNetworkPolicyRBAC)
	}
	progress := progressing(obs, g)
	set = append(set, progress, calm(obs, available(obs, progress)))
	if sleep != nil {
		set = append(set, *sleep)
	} else {
		absent = append(absent, hyperv1.HostedClusterHibernated)
	}
	for i := range set {
		set[i].ObservedGeneration = obs.HC.Generation
	}
	return set, absent
}

// AllFieldsHeeded names the fields of the spec that nobody heeds.
func AllFieldsHeeded(obs *state.Observed) metav1.Condition {
	return validate.AllFieldsHeeded(obs.HC, obs.Payload(), obs.Off...)
}

func fromHCP(obs *state.Observed, conditionType string) metav1.Condition {
	if obs.HCP == nil {
		return conditions.Unknown(conditionType, hyperv1.StatusUnknownReason, messageHCPMissing)
	}
	c := obs.HCPCondition(conditionType)
	if c == nil {
		return conditions.Unknown(conditionType, hyperv1.StatusUnknownReason, messageConditionMissing)
	}
	return conditions.New(conditionType, c.Status, c.Reason, c.Message)
}

func degraded(obs *state.Observed) metav1.Condition {
	c := fromHCP(obs, hyperv1.HostedClusterDegraded)
	if c.Status == metav1.ConditionFalse {
		c.Message = messageNotDegraded
	}
	return c
}

func unmanagedEtcd(obs *state.Observed) metav1.Condition {
	if ref, found := sources.Find(&obs.HC.Spec, sources.UnmanagedEtcd); found {
		if err := ref.Check(obs.HC.Namespace, obs.Sources); err != nil {
			return conditions.False(hyperv1.UnmanagedEtcdAvailable, hyperv1.UnmanagedEtcdMisconfiguredReason, err.Error())
		}
		return conditions.True(hyperv1.UnmanagedEtcdAvailable, hyperv1.UnmanagedEtcdAsExpectedReason, hyperv1.AllIsWellMessage)
	}
	return conditions.False(hyperv1.UnmanagedEtcdAvailable, hyperv1.UnmanagedEtcdMisconfiguredReason,
		"spec.etcd.unmanaged.tls.clientSecret.name is empty: name a Secret with keys "+strings.Join(sources.EtcdClientKeys, ", "))
}

func validationInput(obs *state.Observed) validate.Input {
	return validate.Input{
		HC: obs.HC, Plane: obs.HCP, Namespace: obs.Namespace, Routes: obs.Capabilities.Routes, Payload: obs.Payload(), Sources: obs.Sources, TakenNames: obs.TakenNames,
		Started: obs.HCP != nil || obs.Namespace != nil || state.HasBeenAvailable(obs.HC),
	}
}

func validConfiguration(obs *state.Observed) metav1.Condition {
	mistakes := validate.Mistakes(validationInput(obs))
	if obs.DomainErr != nil {
		mistakes = append(mistakes, obs.DomainErr.Error())
	}
	if len(mistakes) > 0 {
		return conditions.False(hyperv1.ValidHostedClusterConfiguration, hyperv1.InvalidConfigurationReason, strings.Join(mistakes, "; "))
	}
	return conditions.True(hyperv1.ValidHostedClusterConfiguration, hyperv1.AsExpectedReason, "Configuration passes validation")
}

func supported(obs *state.Observed) metav1.Condition {
	if obs.PlatformErr != nil {
		return conditions.False(hyperv1.SupportedHostedCluster, hyperv1.UnsupportedHostedClusterReason, obs.PlatformErr.Error())
	}
	if s, ok := obs.Platform.(platform.Supporter); ok {
		if err := s.Supported(obs.HC, obs.Getenv); err != nil {
			return conditions.False(hyperv1.SupportedHostedCluster, hyperv1.UnsupportedHostedClusterReason, err.Error())
		}
	}
	if err := oneFlavour(obs); err != nil {
		return conditions.False(hyperv1.SupportedHostedCluster, hyperv1.UnsupportedHostedClusterReason, err.Error())
	}
	if err := SpeaksPrivately(obs); err != nil {
		return conditions.False(hyperv1.SupportedHostedCluster, hyperv1.UnsupportedHostedClusterReason, err.Error())
	}
	return conditions.True(hyperv1.SupportedHostedCluster, hyperv1.AsExpectedReason, "HostedCluster is supported by operator configuration")
}

// oneFlavour refuses a control plane of Kubernetes for a hosted cluster of OpenShift, and the reverse: neither knows the other's components.
func oneFlavour(obs *state.Observed) error {
	if obs.Target == nil || obs.UserRelease == nil || obs.Target.Kubernetes == obs.UserRelease.Kubernetes {
		return nil
	}
	flavour := map[bool]string{true: "Kubernetes", false: "OpenShift"}
	return fmt.Errorf("spec.controlPlaneRelease.image: %s is release %s of %s, but spec.release.image is one of %s: name a release of %[4]s, or remove the field",
		obs.Target.Image, obs.Target.Version, flavour[obs.Target.Kubernetes], flavour[obs.UserRelease.Kubernetes])
}

// validReleaseImage is decided anew only when the spec changed or the last answer was not True, so that a registry that goes away does not
// take the condition of a running cluster with it.
func validReleaseImage(obs *state.Observed) metav1.Condition {
	last := conditions.Current(obs.HC.Status.Conditions, hyperv1.ValidReleaseImage, obs.HC.Generation)
	if last != nil && last.Status == metav1.ConditionTrue {
		return conditions.New(last.Type, last.Status, last.Reason, last.Message)
	}
	invalid := func(reason string, err error) metav1.Condition {
		return conditions.False(hyperv1.ValidReleaseImage, reason, err.Error())
	}
	if _, err := obs.Sources.PullSecret(obs.HC); err != nil {
		if obs.Sources.Secret(obs.HC.Spec.PullSecret.Name).Missing {
			return invalid(hyperv1.SecretNotFoundReason, err)
		}
		return invalid(hyperv1.InvalidImageReason, err)
	}
	if errors.Is(obs.ReleaseErr, release.ErrBadPullSecret) {
		return invalid(hyperv1.InvalidImageReason, fmt.Errorf("spec.pullSecret: Secret %s/%s: %w", obs.HC.Namespace, obs.HC.Spec.PullSecret.Name, obs.ReleaseErr))
	}
	if obs.ReleaseErr != nil {
		return invalid(hyperv1.InvalidImageReason, fmt.Errorf("spec.release.image: %w", obs.ReleaseErr))
	}
	if err := release.CheckVersion(versionCheck(obs, obs.UserRelease)); err != nil {
		return invalid(hyperv1.InvalidImageReason, err)
	}
	if err := controlPlaneFollows(obs); err != nil {
		return invalid(hyperv1.InvalidImageReason, err)
	}
	return conditions.True(hyperv1.ValidReleaseImage, hyperv1.AsExpectedReason, "Release image is valid")
}

func versionCheck(obs *state.Observed, r *release.Release) release.VersionCheck {
	_, skip := obs.HC.Annotations[hyperv1.SkipReleaseImageValidation]
	check := release.VersionCheck{
		Target:      r.Version,
		NetworkType: string(obs.HC.Spec.Networking.NetworkType),
		Platform:    string(obs.HC.Spec.Platform.Type),
		Skip:        skip,
	}
	// The version that runs counts only when another image is wanted. It is empty when the last image could never be read, and then nothing
	// runs that could be downgraded.
	if v := obs.HC.Status.Version; v != nil && !r.Matches(v.Desired.Image) {
		check.Current = v.Desired.Version
	}
	return check
}

// controlPlaneFollows says why the control plane can't go on from the release that it has, or has begun to get, to the wanted one. With
// spec.controlPlaneRelease that is another one than the hosted cluster's, and stays so when the field is removed.
func controlPlaneFollows(obs *state.Observed) error {
	check, history := versionCheck(obs, obs.Target), obs.HC.Status.ControlPlaneVersion.History
	if len(history) == 0 || history[0].Version == "" {
		return release.CheckVersion(check)
	}
	check.Current = ""
	if newest := history[0]; !obs.Target.Matches(newest.Image) {
		check.Current = newest.Version
	}
	if err := release.CheckVersion(check); err != nil && check.Current != "" {
		return fmt.Errorf("the control plane is at %s, see status.controlPlaneVersion: %w; spec.controlPlaneRelease.image may name such a release, too", check.Current, err)
	} else if err != nil {
		return err
	}
	return nil
}

// ReconciliationActive says whether the hosted cluster is paused.
func ReconciliationActive(pausedUntil *string, now time.Time) metav1.Condition {
	active := func(reason, message string) metav1.Condition {
		return conditions.True(hyperv1.ReconciliationActive, reason, message)
	}
	p := pause.At(pausedUntil, now)
	switch {
	case p.Invalid:
		return active(hyperv1.InvalidPausedUntilValueReason, fmt.Sprintf("spec.pausedUntil %q is neither a time nor true or false, so the cluster is not paused: write it like 2027-01-31T12:00:00Z", *pausedUntil))
	case p.Active && p.Until.IsZero():
		return conditions.False(hyperv1.ReconciliationActive, hyperv1.ReconciliationPausedReason, "Reconciliation paused until field removed")
	case p.Active:
		return conditions.False(hyperv1.ReconciliationActive, hyperv1.ReconciliationPausedReason, "Reconciliation paused until: "+p.Until.Format(time.RFC3339))
	default:
		return active(hyperv1.AsExpectedReason, "Reconciliation active on resource")
	}
}

// validProxy looks at the certificates that the proxy's own certificate may be signed with.
func validProxy(obs *state.Observed, now time.Time) metav1.Condition {
	config := obs.HC.Spec.Configuration
	if config == nil || config.Proxy == nil || config.Proxy.TrustedCA.Name == "" {
		return conditions.True(hyperv1.ValidProxyConfiguration, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
	}
	invalid := func(format string, args ...any) metav1.Condition {
		return conditions.False(hyperv1.ValidProxyConfiguration, hyperv1.ProxyCABundleInvalidReason,
			fmt.Sprintf("spec.configuration.proxy.trustedCA: ConfigMap %s/%s %s", obs.HC.Namespace, config.Proxy.TrustedCA.Name, fmt.Sprintf(format, args...)))
	}
	src := obs.Sources.ConfigMap(config.Proxy.TrustedCA.Name)
	if src.Missing {
		return invalid("does not exist: create it with key %s, or remove the field", names.CABundleKey)
	}
	certs, err := cert.ParseCertsPEM(src.Data[names.CABundleKey])
	if err != nil {
		return invalid("has no PEM certificates under key %s: put them there", names.CABundleKey)
	}
	for _, c := range certs {
		if now.After(c.NotAfter) {
			return invalid("holds a certificate of %q that expired on %s: replace it", c.Subject.CommonName, c.NotAfter.UTC().Format(time.DateOnly))
		}
	}
	return conditions.True(hyperv1.ValidProxyConfiguration, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
}

// ProxyCAExpiry is when the first certificate ends that the proxy is checked with; zero when there is none, or none can be read.
func ProxyCAExpiry(obs *state.Observed) (first time.Time) {
	config := obs.HC.Spec.Configuration
	if config == nil || config.Proxy == nil || config.Proxy.TrustedCA.Name == "" {
		return first
	}
	certs, err := cert.ParseCertsPEM(obs.Sources.ConfigMap(config.Proxy.TrustedCA.Name).Data[names.CABundleKey])
	if err != nil {
		return first
	}
	for _, c := range certs {
		if first.IsZero() || c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	return first
}

// autoNode is what the control plane says, and that Karpenter is of no use where it says nothing.
func autoNode(obs *state.Observed) metav1.Condition {
	if c := obs.HCPCondition(hyperv1.AutoNodeEnabled); c != nil {
		return conditions.New(hyperv1.AutoNodeEnabled, c.Status, c.Reason, c.Message)
	}
	message := "Karpenter is not configured"
	switch {
	case obs.HC.Spec.AutoNode == nil:
	case obs.AutoNode(obs.HC.Spec.AutoNode) == nil:
		return calm(obs, conditions.False(hyperv1.AutoNodeEnabled, hyperv1.AutoNodeProgressingReason, ""))
	case karpenter.Asked(obs.HC.Spec.AutoNode) && !obs.Payload():
		return conditions.False(hyperv1.AutoNodeEnabled, hyperv1.AutoNodeProgressingReason, "the control plane has not said anything about Karpenter yet")
	default:
		message = "spec.autoNode has no effect on platform " + string(obs.HC.Spec.Platform.Type)
	}
	return conditions.False(hyperv1.AutoNodeEnabled, hyperv1.AutoNodeNotConfiguredReason, message)
}

func platformCredentials(obs *state.Observed) metav1.Condition {
	switch {
	case obs.PlatformErr != nil:
		return conditions.False(hyperv1.PlatformCredentialsFound, hyperv1.PlatformCredentialsNotFoundReason, obs.PlatformErr.Error())
	case obs.CredentialsErr != nil:
		return conditions.False(hyperv1.PlatformCredentialsFound, hyperv1.PlatformCredentialsNotFoundReason, obs.CredentialsErr.Error())
	}
	if len(obs.Credentials) == 0 {
		return conditions.True(hyperv1.PlatformCredentialsFound, hyperv1.AsExpectedReason, fmt.Sprintf("Platform %s needs no credentials", obs.HC.Spec.Platform.Type))
	}
	return conditions.True(hyperv1.PlatformCredentialsFound, hyperv1.AsExpectedReason, "Required platform credentials are found")
}

func ignitionEndpoint(obs *state.Observed) metav1.Condition {
	if obs.Ignition == nil {
		return conditions.False(hyperv1.IgnitionEndpointAvailable, hyperv1.NotFoundReason, "Deployment ignition-server is not found: machines can't join yet")
	}
	if r := obs.Ignition.Spec.Replicas; r != nil && *r == 0 {
		return conditions.False(hyperv1.IgnitionEndpointAvailable, hyperv1.WaitingForAvailableReason, "Deployment ignition-server has no replicas: it runs while there are NodePools")
	}
	for _, c := range obs.Ignition.Status.Conditions {
		if c.Type != "Available" {
			continue
		}
		if c.Status == corev1.ConditionTrue && obs.IgnitionEndpoint == "" {
			return conditions.False(hyperv1.IgnitionEndpointAvailable, hyperv1.WaitingForAvailableReason,
				"machines can't reach the ignition server: publish Ignition by NodePort with an address in spec.services")
		}
		if c.Status == corev1.ConditionTrue {
			return conditions.True(hyperv1.IgnitionEndpointAvailable, hyperv1.AsExpectedReason, "Ignition server deployment is available")
		}
		return conditions.False(hyperv1.IgnitionEndpointAvailable, hyperv1.WaitingForAvailableReason, "Deployment ignition-server is not available yet")
	}
	return conditions.Unknown(hyperv1.IgnitionEndpointAvailable, hyperv1.StatusUnknownReason, "Deployment ignition-server has not reported its availability yet")
}

// progressing is True until status.version wants what spec.release wants. A closed gate blocks the rollout, and its message is shown.
func progressing(obs *state.Observed, g Gates) metav1.Condition {
	blocked := func(message string) metav1.Condition {
		return conditions.False(hyperv1.HostedClusterProgressing, hyperv1.BlockedReason, message)
	}
	for _, gate := range g.list() {
		if Closed(gate) {
			return blocked(gate.Message)
		}
	}
	if err := UpgradeAllowed(obs); err != nil {
		return blocked(err.Error())
	}
	if obs.ReleaseErr != nil {
		return blocked(fmt.Sprintf("looking up the release: %v", obs.ReleaseErr))
	}
	if a := obs.Admission; a != nil && a.Waits {
		return conditions.False(hyperv1.HostedClusterProgressing, a.Reason, a.Message)
	}
	if v := obs.HC.Status.Version; v == nil || !obs.UserRelease.Matches(v.Desired.Image) {
		if reason, message := obs.RolloutTrouble(); reason != "" {
			return conditions.True(hyperv1.HostedClusterProgressing, reason, message)
		}
		return conditions.True(hyperv1.HostedClusterProgressing, hyperv1.ProgressingReason,
			fmt.Sprintf("Working towards %s: the control plane has not taken up %s yet", obs.UserRelease.Version, obs.UserRelease.Image))
	}
	if reason, message := obs.RolloutTrouble(); reason != "" {
		return conditions.True(hyperv1.HostedClusterProgressing, reason, message)
	}
	return conditions.False(hyperv1.HostedClusterProgressing, hyperv1.AsExpectedReason, "HostedCluster is at expected version")
}

func available(obs *state.Observed, progress metav1.Condition) metav1.Condition {
	c := obs.HCPCondition(hyperv1.HostedControlPlaneAvailable)
	switch {
	case c != nil && c.Status == metav1.ConditionTrue:
		return conditions.True(hyperv1.HostedClusterAvailable, hyperv1.AsExpectedReason, MessageAvailable)
	case obs.OperatorTrouble() != nil:
		t := obs.OperatorTrouble()
		return conditions.False(hyperv1.HostedClusterAvailable, t.Reason, t.Message)
	case c != nil:
		return conditions.New(hyperv1.HostedClusterAvailable, c.Status, c.Reason, c.Message)
	case progress.Reason == hyperv1.WaitingForCapacityReason:
		return conditions.False(hyperv1.HostedClusterAvailable, progress.Reason, progress.Message)
	case progress.Reason == hyperv1.BlockedReason:
		return conditions.False(hyperv1.HostedClusterAvailable, hyperv1.WaitingForAvailableReason, progress.Message)
	}
	return conditions.False(hyperv1.HostedClusterAvailable, hyperv1.WaitingForAvailableReason, messageWaiting)
}

// UpgradeAllowed tells why the control plane may not move to the wanted release now; nil when it may, or need not.
func UpgradeAllowed(obs *state.Observed) error {
	v := obs.HC.Status.Version
	if v == nil || obs.Target == nil || obs.UserRelease == nil || obs.Target.Matches(v.Desired.Image) {
		return nil
	}
	if obs.HCP != nil && releaseimage.ControlPlane(&obs.HCP.Spec) == obs.Target.Image {
		return nil // it has begun, and half an upgrade is worse than either version
	}
	upgradeable := conditions.Get(obs.HC.Status.Conditions, hyperv1.ClusterVersionUpgradeable)
	if upgradeable == nil || upgradeable.Status != metav1.ConditionFalse {
		return nil
	}
	if force, ok := obs.HC.Annotations[hyperv1.ForceUpgradeToAnnotation]; ok {
		if force == obs.Target.Image {
			return nil
		}
		return fmt.Errorf("annotation %s names %q, but the wanted release is %q: set it to that, or remove it", hyperv1.ForceUpgradeToAnnotation, force, obs.Target.Image)
	}
	if obs.HC.Spec.ControlPlaneRelease != nil || release.SameMinor(v.Desired.Version, obs.Target.Version) {
		return nil
	}
	return fmt.Errorf("the cluster is not upgradeable from %s to %s: %s (to upgrade all the same, set annotation %s to the wanted release image)",
		v.Desired.Version, obs.Target.Version, upgradeable.Message, hyperv1.ForceUpgradeToAnnotation)
}

// ReconciliationSucceeded tells how the pass ended.
func ReconciliationSucceeded(err error, generation int64) metav1.Condition {
	c := conditions.True(hyperv1.ReconciliationSucceeded, hyperv1.ReconciliationSucceededReason, "The hosted cluster reconciliation has succeeded")
	if err != nil {
		c = conditions.False(hyperv1.ReconciliationSucceeded, hyperv1.ReconciliationErrorReason, err.Error())
	}
	c.ObservedGeneration = generation
	return c
}

// SpeaksPrivately tells why the control-plane-operator would look for machines where there are none: it is from before private types. Labels
// that could not be read say nothing.
func SpeaksPrivately(obs *state.Observed) error {
	if !obs.PrivateCAPI || obs.OperatorLabels == nil || obs.OperatorLabels[capiproxy.ImageLabel] == "true" || !capi.HasMachines(obs.HC) {
		return nil
	}
	return fmt.Errorf("the control-plane-operator of this release, %s, does not know private types of Cluster API (image label %s): "+
		"use a newer release, or name an image that does by annotation %s", obs.OperatorImage, capiproxy.ImageLabel, hyperv1.ControlPlaneOperatorImageAnnotation)
}

// admittedCondition is absent where nobody asks, and while another gate is closed.
func admittedCondition(obs *state.Observed) *metav1.Condition {
	if obs.Admission == nil {
		return nil
	}
	status := metav1.ConditionTrue
	if obs.Admission.Waits {
		status = metav1.ConditionFalse
	}
	c := conditions.New(hyperv1.ControlPlaneAdmitted, status, obs.Admission.Reason, obs.Admission.Message)
	return &c
}
