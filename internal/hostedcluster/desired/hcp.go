package desired

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/auditlogs"
	auditcontract "hcp.internal/platform/internal/contract/auditlogs"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/pki"
)

// mirroredToHCP are annotations of a HostedCluster that its HostedControlPlane has, too: set when present, removed when absent.
var mirroredToHCP = []string{
	hyperv1.DisablePKIReconciliationAnnotation,
	hyperv1.CleanupCloudResourcesAnnotation,
	hyperv1.OauthLoginURLOverrideAnnotation,
	hyperv1.TopologyAnnotation,
	hyperv1.RequestServingNodeAdditionalSelectorAnnotation,
	hyperv1.ControlPlanePriorityClass, hyperv1.APICriticalPriorityClass, hyperv1.EtcdPriorityClass,
	hyperv1.DisableProfilingAnnotation,
	hyperv1.KubeAPIServerGOGCAnnotation, hyperv1.KubeAPIServerGOMemoryLimitAnnotation,
	hyperv1.KubeAPIServerMaximumRequestsInFlight, hyperv1.KubeAPIServerMaximumMutatingRequestsInFlight,
	hyperv1.KubeAPIServerVerbosityLevelAnnotation, hyperv1.KubeAPIServerGoAwayChance, hyperv1.KubeAPIServerServiceAccountTokenMaxExpiration,
	hyperv1.KonnectivityServerImageAnnotation, hyperv1.KonnectivityAgentImageAnnotation, hyperv1.ClusterAutoscalerImage, hyperv1.MachineApproverImage,
	hyperv1.AWSKMSProviderImage, hyperv1.IBMCloudKMSProviderImage, hyperv1.PortierisImageAnnotation,
	hyperv1.CertifiedOperatorsCatalogImageAnnotation, hyperv1.CommunityOperatorsCatalogImageAnnotation,
	hyperv1.RedHatMarketplaceCatalogImageAnnotation, hyperv1.RedHatOperatorsCatalogImageAnnotation, hyperv1.OLMCatalogsISRegistryOverridesAnnotation,
	hyperv1.PrivateIngressControllerAnnotation, hyperv1.IngressControllerLoadBalancerScope,
	hyperv1.EnsureExistsPullSecretReconciliation,
	hyperv1.DisableMachineManagement, hyperv1.DisableIgnitionServerAnnotation, hyperv1.EnableMetricsForwarding, hyperv1.DebugDeploymentsAnnotation,
	hyperv1.AWSLoadBalancerTargetNodesAnnotation, hyperv1.AWSLoadBalancerSubnetsAnnotation, hyperv1.AWSLoadBalancerHealthProbeModeAnnotation,
	hyperv1.AzureLoadBalancerHealthProbeModeAnnotation, hyperv1.SharedLoadBalancerHealthProbePathAnnotation, hyperv1.SharedLoadBalancerHealthProbePortAnnotation,
	hyperv1.ManagementPlatformAnnotation, hyperv1.AWSMachinePublicIPs,
	hyperv1.AWSKarpenterDefaultInstanceProfile, hyperv1.KarpenterProviderAWSImage, hyperv1.KarpenterOperatorImage, hyperv1.KarpenterCoreE2EOverrideAnnotation,
	hyperv1.AWSTerminationHandlerQueueURLAnnotation, hyperv1.HostedClusterRestoredFromBackupAnnotation, hyperv1.SwiftPodNetworkInstanceAnnotation,
	hyperv1.ImageOverridesAnnotation, hyperv1.PrivateCAPITypesAnnotation, encryption.PluginAnnotation,
	pki.ValidityAnnotation, pki.RenewalAnnotation, pki.RotateBeforeAnnotation, pki.RevokeBeforeAnnotation, pki.LeaveNodesAnnotation, names.ContainerMachinesAnnotation,
}

// mirroredPrefixes are groups of annotations that are mirrored by prefix.
var mirroredPrefixes = []string{hyperv1.ResourceRequestOverrideAnnotationPrefix + "/", hyperv1.IDPOverridesAnnotationPrefix}

// HostedControlPlane maps the HostedCluster to its HostedControlPlane. live is the one there is, or nil: a few fields are never cleared.
func HostedControlPlane(obs *state.Observed) *hyperv1.HostedControlPlane {
	hc, live := obs.HC, obs.HCP
	if live == nil {
		live = &hyperv1.HostedControlPlane{}
	}
	hcp := &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: names.NamespaceOf(hc), Name: hc.Name,
			Labels:      mirroredLabels(hc.Labels),
			Annotations: hcpAnnotations(obs, live),
		},
		Spec: hcpSpec(hc, &live.Spec),
	}
	hcp.Spec.AutoNode = obs.AutoNode(hcp.Spec.AutoNode)
	if ca := sources.ProxyCA(&hc.Spec); hcp.Spec.AdditionalTrustBundle == nil && len(obs.Sources.ConfigMap(ca).Data[names.CABundleKey]) > 0 {
		hcp.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: names.UserCABundle}
	}
	return hcp
}

func hcpSpec(hc *hyperv1.HostedCluster, live *hyperv1.HostedControlPlaneSpec) hyperv1.HostedControlPlaneSpec {
	from := hc.Spec.DeepCopy()
	spec := hyperv1.HostedControlPlaneSpec{
		ReleaseImage:                     from.Release.Image,
		UpdateService:                    from.UpdateService,
		Channel:                          from.Channel,
		PullSecret:                       corev1.LocalObjectReference{Name: names.PullSecret},
		IssuerURL:                        from.IssuerURL,
		Networking:                       from.Networking,
		Platform:                         from.Platform,
		DNS:                              from.DNS,
		ServiceAccountSigningKey:         from.ServiceAccountSigningKey,
		ClusterID:                        from.ClusterID,
		InfraID:                          from.InfraID,
		FIPS:                             from.FIPS,
		KubeAPIServerDNSName:             from.KubeAPIServerDNSName,
		ControllerAvailabilityPolicy:     from.ControllerAvailabilityPolicy,
		InfrastructureAvailabilityPolicy: from.InfrastructureAvailabilityPolicy,
		Services:                         from.Services,
		AuditWebhook:                     from.AuditWebhook,
		Etcd:                             from.Etcd,
		Configuration:                    from.Configuration,
		ImageContentSources:              from.ImageContentSources,
		SecretEncryption:                 from.SecretEncryption,
		PausedUntil:                      from.PausedUntil,
		OLMCatalogPlacement:              from.OLMCatalogPlacement,
		Autoscaling:                      from.Autoscaling,
		NodeSelector:                     from.NodeSelector,
		Tolerations:                      from.Tolerations,
		Labels:                           from.Labels,
		Capabilities:                     from.Capabilities,
		OperatorConfiguration:            from.OperatorConfiguration,
		AutoNode:                         from.AutoNode,
		Monitoring:                       from.Monitoring,
	}
	if r := from.ControlPlaneRelease; r != nil && r.Image != "" {
		spec.ControlPlaneReleaseImage = &r.Image
	}
	if from.SSHKey.Name != "" {
		spec.SSHKey.Name = names.SSHKey
	}
	if from.AdditionalTrustBundle != nil {
		spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: names.UserCABundle}
	}
	if from.ServiceAccountSigningKey != nil {
		spec.ServiceAccountSigningKey = &corev1.LocalObjectReference{Name: names.ServiceAccountKey}
	}
	// Never cleared: kube-apiserver could not read what was written encrypted, and would drop audit events.
	if spec.AuditWebhook == nil {
		spec.AuditWebhook = live.AuditWebhook.DeepCopy()
	}
	if spec.SecretEncryption == nil {
		spec.SecretEncryption = live.SecretEncryption.DeepCopy()
	}
	if _, legacy := hc.Annotations[hyperv1.EnableMetricsForwarding]; legacy && spec.Monitoring.MetricsForwarding.Mode == "" {
		spec.Monitoring.MetricsForwarding.Mode = hyperv1.MetricsForwardingForward
	}
	if spec.Platform.Type == hyperv1.AgentPlatform {
		spec.Platform.Type = hyperv1.NonePlatform
	}
	return spec
}

func hcpAnnotations(obs *state.Observed, live *hyperv1.HostedControlPlane) map[string]string {
	hc := obs.HC
	annotations := map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(hc)}
	for _, k := range mirroredToHCP {
		if v, ok := hc.Annotations[k]; ok {
			annotations[k] = v
		}
	}
	for k, v := range hc.Annotations {
		for _, prefix := range mirroredPrefixes {
			if strings.HasPrefix(k, prefix) {
				annotations[k] = v
			}
		}
	}
	switch hc.Spec.Monitoring.MetricsForwarding.Mode { // for control-plane-operators that know only the annotation, which the field overrules
	case hyperv1.MetricsForwardingForward:
		annotations[hyperv1.EnableMetricsForwarding] = "true"
	case hyperv1.MetricsForwardingNone:
		delete(annotations, hyperv1.EnableMetricsForwarding)
	}
	if !autoscalingNeeded(obs.Pools) {
		annotations[hyperv1.DisableClusterAutoscalerAnnotation] = "true"
	}
	if obs.PutsToSleep(live.Annotations) {
		annotations[hyperv1.HibernateAnnotation] = "true"
	}
	if settings := auditlogs.Wanted(obs.AuditLogs, live.Annotations[auditcontract.SettingsAnnotation]); settings != "" {
		annotations[auditcontract.SettingsAnnotation] = settings
	}
	restart(hc, live, annotations)
	return annotations
}

// restart copies restart-date once per value, and remembers the value: another restart, ordered on the HostedControlPlane itself, stays.
func restart(hc *hyperv1.HostedCluster, live *hyperv1.HostedControlPlane, annotations map[string]string) {
	wanted, asked := hc.Annotations[hyperv1.RestartDateAnnotation]
	previous := live.Annotations[hyperv1.PreviousRestartDateAnnotation]
	current, has := live.Annotations[hyperv1.RestartDateAnnotation]
	switch {
	case asked && wanted != previous:
		annotations[hyperv1.RestartDateAnnotation], annotations[hyperv1.PreviousRestartDateAnnotation] = wanted, wanted
		return
	case has:
		annotations[hyperv1.RestartDateAnnotation] = current
	}
	if previous != "" {
		annotations[hyperv1.PreviousRestartDateAnnotation] = previous
	}
}

func autoscalingNeeded(pools []hyperv1.NodePool) bool {
	for _, np := range pools {
		if np.Spec.AutoScaling != nil {
			return true
		}
	}
	return false
}

func mirroredLabels(from map[string]string) map[string]string {
	labels := map[string]string{}
	for k, v := range from {
		if strings.HasPrefix(k, hyperv1.APIOpenShiftLabelPrefix) {
			labels[k] = v
		}
	}
	return labels
}

// PausedControlPlane is the HostedControlPlane as it is, with the pause: while a cluster is paused, nothing else of its spec is passed on.
func PausedControlPlane(hc *hyperv1.HostedCluster, live *hyperv1.HostedControlPlane) *hyperv1.HostedControlPlane {
	hcp := &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: live.Name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec:       *live.Spec.DeepCopy(),
	}
	for k, v := range live.Labels {
		if k != names.OwnedByLabel {
			hcp.Labels[k] = v
		}
	}
	for k, v := range live.Annotations {
		if k != hyperv1.DesiredStateHashAnnotation {
			hcp.Annotations[k] = v
		}
	}
	hcp.Spec.PausedUntil = hc.Spec.PausedUntil
	return hcp
}

// HeldControlPlane is the HostedControlPlane as it is, with what is passed on also while a gate is closed: the end of a pause, and whether it sleeps. Karpenter, which
// leaves for that, comes back when the gate is open.
func HeldControlPlane(obs *state.Observed) *hyperv1.HostedControlPlane {
	hcp := PausedControlPlane(obs.HC, obs.HCP)
	hcp.Spec.AutoNode = obs.AutoNode(hcp.Spec.AutoNode)
	delete(hcp.Annotations, hyperv1.HibernateAnnotation)
	if obs.PutsToSleep(obs.HCP.Annotations) {
		hcp.Annotations[hyperv1.HibernateAnnotation] = "true"
	}
	return hcp
}
