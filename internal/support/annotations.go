package support

import (
	"slices"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/auditlogs"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/upgrades"
	"hcp.internal/platform/internal/pause"
)

// Texts that several annotations share.
const (
	noCatalogs       = "Kubernetes releases have no operator catalogs"
	onlySized        = "with an installation of --enable-size-tagging"
	noIngress        = "Kubernetes releases have no ingress controller: install one in the hosted cluster"
	noOAuth          = "Kubernetes releases have no OAuth server"
	noKarpenter      = "there is no Karpenter here: size NodePools with spec.autoScaling"
	cloudOnly        = "it is for a platform that this operator doesn't host"
	onObjects        = "it marks objects that operators make"
	noForwarding     = "metrics are not forwarded to the hosted cluster: scrape the control plane's namespace"
	noMigration      = "an operator notes there how far a migration of machine objects is"
	encryptionPlugin = "hypershift.openshift.io/secret-encryption-plugin"
	whichProvider    = "this operator runs no such provider of Cluster API"
)

// annotations needs no By: a test looks for who reads a key.
//
// They are those of HostedClusters and NodePools first, and then the annotations, labels and finalizers that operators write.
var annotations = func() []Entry {
	var list []Entry
	add := func(verdict Verdict, text string, keys ...string) {
		for _, k := range keys {
			list = append(list, Entry{Path: k, Verdict: verdict, Text: text})
		}
	}
	add(Heeded, "",
		hyperv1.ControlPlaneOperatorImageAnnotation, hyperv1.ControlPlaneOperatorImageLabelsAnnotation, hyperv1.ForceUpgradeToAnnotation,
		hyperv1.SkipReleaseImageValidation, hyperv1.SkipKASConflictSANValidation, hyperv1.HCDestroyGracePeriodAnnotation,
		hyperv1.SkipControlPlaneNamespaceDeletionAnnotation, hyperv1.HostedClusterScopeAnnotation, hyperv1.HostedClusterRestoredFromBackupAnnotation,
		hyperv1.PodSecurityAdmissionLabelOverrideAnnotation, hyperv1.AzureHCPClusterResourceIDAnnotation, hyperv1.ClusterAPIManagerImage,
		hyperv1.DisableMachineManagement, hyperv1.ImageOverridesAnnotation, hyperv1.LimitedSupportLabel, hyperv1.SilenceClusterAlertsLabel)
	add(Heeded, "",
		hyperv1.KonnectivityServerImageAnnotation, hyperv1.KonnectivityAgentImageAnnotation, hyperv1.ClusterAutoscalerImage,
		hyperv1.RestartDateAnnotation, hyperv1.DebugDeploymentsAnnotation, hyperv1.ResourceRequestOverrideAnnotationPrefix+"*",
		hyperv1.TopologyAnnotation, hyperv1.RequestServingNodeAdditionalSelectorAnnotation,
		hyperv1.ControlPlanePriorityClass, hyperv1.APICriticalPriorityClass, hyperv1.EtcdPriorityClass,
		hyperv1.KubeAPIServerGOGCAnnotation, hyperv1.KubeAPIServerGOMemoryLimitAnnotation, hyperv1.KubeAPIServerMaximumRequestsInFlight,
		hyperv1.KubeAPIServerMaximumMutatingRequestsInFlight, hyperv1.KubeAPIServerVerbosityLevelAnnotation, hyperv1.KubeAPIServerGoAwayChance,
		hyperv1.KubeAPIServerServiceAccountTokenMaxExpiration, hyperv1.DisableMonitoringServices, hyperv1.DisableIgnitionServerAnnotation,
		hyperv1.DisableClusterAutoscalerAnnotation, hyperv1.AWSLoadBalancerTargetNodesAnnotation)
	add(Heeded, "", hyperv1.HibernateAnnotation, pause.ScheduleAnnotation, encryptionPlugin)
	add(Heeded, "", hyperv1.DisablePKIReconciliationAnnotation,
		"hypershift.openshift.io/certificate-validity", "hypershift.openshift.io/certificate-renewal",
		"hypershift.openshift.io/rotate-authorities-before", "hypershift.openshift.io/revoke-authorities-before", "hypershift.openshift.io/rotate-authorities-without-nodes", "hypershift.openshift.io/machines-are-containers")
	add(Heeded, "", hyperv1.MachineHealthCheckTimeoutAnnotation, hyperv1.MachineHealthCheckNodeStartupTimeoutAnnotation,
		hyperv1.MachineHealthCheckMaxUnhealthyAnnotation)
	add(Heeded, "", hyperv1.ClusterAPIProviderAWSImage, hyperv1.AWSMachinePublicIPs, hyperv1.EC2InstanceMetadataHTTPTokensAnnotation, hyperv1.EnableSpotAnnotation)
	list = append(list, Entry{Path: hyperv1.CleanupCloudResourcesAnnotation, Verdict: NotHeeded,
		Text: "volumes and load balancers that a hosted cluster made are not looked for: delete them in the hosted cluster first"})

	add(NotHeeded, "the approver is a part of the config operator", hyperv1.MachineApproverImage)
	add(NotHeeded, noKMS, hyperv1.AWSKMSProviderImage, hyperv1.IBMCloudKMSProviderImage)
	add(NotHeeded, "nothing here checks signatures of images", hyperv1.PortierisImageAnnotation)
	add(Heeded, "", hyperv1.ClusterAPIKubeVirtProviderImage, hyperv1.ClusterAPIAgentProviderImage,
		hyperv1.ClusterAPIAzureProviderImage, hyperv1.ClusterAPIPowerVSProviderImage, hyperv1.ClusterAPIOpenStackProviderImage,
		hyperv1.ClusterAPIGCPProviderImage, hyperv1.JSONPatchAnnotation, hyperv1.AllowUnsupportedKubeVirtRHCOSVariantsAnnotation)
	add(NotHeeded, whichProvider, hyperv1.OpenStackResourceControllerImage)
	add(NotHeeded, noKarpenter, hyperv1.KarpenterProviderAWSImage, hyperv1.KarpenterOperatorImage, hyperv1.AWSKarpenterDefaultInstanceProfile,
		hyperv1.KarpenterCoreE2EOverrideAnnotation)
	add(NotHeeded, noCatalogs, hyperv1.CertifiedOperatorsCatalogImageAnnotation, hyperv1.CommunityOperatorsCatalogImageAnnotation,
		hyperv1.RedHatMarketplaceCatalogImageAnnotation, hyperv1.RedHatOperatorsCatalogImageAnnotation, hyperv1.OLMCatalogsISRegistryOverridesAnnotation)
	for _, k := range []string{hyperv1.ClusterSizeOverrideAnnotation, hyperv1.ResourceBasedControlPlaneAutoscalingAnnotation} {
		list = append(list, Entry{Path: k, Verdict: Heeded, Text: onlySized, Needs: SizeTagging})
	}
	add(Written, onObjects, hyperv1.HostedClusterScheduledAnnotation, hyperv1.RecommendedClusterSizeAnnotation, hyperv1.HostedClusterSizeLabel, "hypershift.openshift.io/size-effects",
		"hypershift.openshift.io/installed-version", "hypershift.openshift.io/control-plane-operator-version")
	add(Heeded, onlySized, hyperv1.ClusterSizeLabel, hyperv1.PairedNodesLabel, "hypershift.openshift.io/request-serving-gomemlimit")
	add(Written, onObjects, "hypershift.openshift.io/pairlabel", "hypershift.openshift.io/component", "hypershift.openshift.io/placeholder")
	add(Written, onObjects, auditlogs.SettingsAnnotation, auditlogs.ClaimLabel, "hypershift.openshift.io/shared-gateway", "hypershift.openshift.io/last-observed-restart-count", "hypershift.openshift.io/last-snapshot-time")
	add(NotHeeded, "profiling of control planes is always off", hyperv1.DisableProfilingAnnotation)
	add(NotHeeded, noForwarding, hyperv1.EnableMetricsForwarding)
	add(NotHeeded, noOAuth, hyperv1.IDPOverridesAnnotationPrefix+"*", hyperv1.OauthLoginURLOverrideAnnotation)
	add(NotHeeded, noIngress, hyperv1.PrivateIngressControllerAnnotation, hyperv1.IngressControllerLoadBalancerScope)
	add(NotHeeded, "the pull secret of the hosted cluster's nodes is that of spec.pullSecret", hyperv1.EnsureExistsPullSecretReconciliation,
		hyperv1.GlobalPullSecretNodeLabel)
	add(NotHeeded, cloudOnly, hyperv1.DisableAWSNodeTerminationHandlerAnnotation,
		hyperv1.AWSLoadBalancerSubnetsAnnotation, hyperv1.AWSLoadBalancerHealthProbeModeAnnotation, hyperv1.AzureLoadBalancerHealthProbeModeAnnotation,
		hyperv1.SharedLoadBalancerHealthProbePathAnnotation, hyperv1.SharedLoadBalancerHealthProbePortAnnotation,
		hyperv1.SwiftPodNetworkInstanceAnnotation, hyperv1.ManagementPlatformAnnotation, hyperv1.AWSTerminationHandlerQueueURLAnnotation)
	add(NotHeeded, "nodes reach the API server without HAProxy", hyperv1.NodePoolHAProxyImageAnnotation)
	add(NotHeeded, "images of what runs on nodes come from the release", hyperv1.NodePoolCanonicalDataPlaneImagesAnnotation)

	add(Written, "what has the API group api.openshift.com is copied to the HostedControlPlane", hyperv1.APIOpenShiftLabelPrefix+"*")
	add(Written, "a tag of what commands make in AWS", "hypershift.openshift.io/source")
	add(Written, "is on the pod that restores an etcd in place, see docs/backup.md", "hypershift.openshift.io/etcd-restore")
	add(Written, "tells which keys encrypt Secrets when a backup begins, see docs/backup.md", "hypershift.openshift.io/encryption-keys")
	add(Written, "tells what a backup has no room for, see docs/backup.md", "hypershift.openshift.io/left-out")
	add(Written, "tells of which HCPEtcdBackup a Job is", "hypershift.openshift.io/hcp", "hypershift.openshift.io/hcp-namespace", "hypershift.openshift.io/backup-name", "hypershift.openshift.io/backup-uid")
	add(Written, onObjects, hyperv1.InterruptibleInstanceLabel, hyperv1.SpotInterruptionSignalAnnotation, "hypershift.openshift.io/external-private-service", "hypershift.openshift.io/azure-pls-external-private-svc", "hypershift.openshift.io/azure-pls-nat-subnet", "hypershift.openshift.io/azure-pls-cleanup", "hypershift.openshift.io/azure-private-link-service", "hypershift.openshift.io/last-applied-security-group-tags", "hypershift.openshift.io/oidc-documents",
		hyperv1.PreviousRestartDateAnnotation, hyperv1.HasBeenAvailableAnnotation, hyperv1.KASServingCertHashAnnotation,
		hyperv1.HostedClusterFinalizer, hyperv1.KarpenterFinalizer, hyperv1.AWSOIDCDiscoveryFinalizer,
		hyperv1.ControlPlaneComponentFinalizer, hyperv1.AWSEndpointServiceHOFinalizer, hyperv1.AWSEndpointServiceCPOFinalizer,
		hyperv1.HostedClusterAnnotation, hyperv1.HostedControlPlaneLabel, hyperv1.ControlPlaneComponentLabel, hyperv1.RequestServingComponentLabel,
		hyperv1.OperatorComponentLabel, hyperv1.NeedManagementKASAccessLabel, hyperv1.NeedMetricsServerAccessLabel, hyperv1.AllowGuestWebhooksServiceLabel,
		hyperv1.RouteVisibilityLabel, hyperv1.ExternalDNSHostnameAnnotation, hyperv1.ReleaseImageAnnotation, hyperv1.ReferencedResourceAnnotationPrefix+"*",
		hyperv1.HostedClusterSourcedAnnotation, hyperv1.DefaultSecurityContextUIDAnnotation, hyperv1.DesiredStateHashAnnotation,
		hyperv1.ClusterNameLabel, hyperv1.ClusterNamespaceLabel, hyperv1.ManagedLabel, hyperv1.ManagedByLabel,
		hyperv1.PodSecurityEnforceLabel, hyperv1.PodSecurityAuditLabel, hyperv1.PodSecurityWarnLabel, hyperv1.PodSecurityLabelSyncLabel,
		hyperv1.ClusterMonitoringLabel, hyperv1.ControlPlaneNodeLabel,
		hyperv1.NodePoolAnnotation, hyperv1.NodePoolFirstConfigVersionLabel, hyperv1.NodePoolCurrentConfigAnnotation,
		hyperv1.NodePoolCurrentConfigVersionAnnotation, hyperv1.NodePoolTargetConfigVersionAnnotation, hyperv1.NodePoolPlatformMachineTemplateAnnotation,
		hyperv1.NodePoolUpgradeInProgressTrueAnnotation, hyperv1.NodePoolUpgradeInProgressFalseAnnotation, hyperv1.NodePoolMaxUnavailableAnnotation,
		hyperv1.NodePoolTaintsAnnotation, hyperv1.NodePoolReleaseVersionAnnotation, hyperv1.NodeLabelPrefix+"*", hyperv1.NodePoolLabelsSyncedAnnotation,
		hyperv1.InfraIDLabel, hyperv1.NodePoolNameLabel, hyperv1.TokenSecretAnnotation, hyperv1.TokenSecretIgnitionReachedAnnotation,
		hyperv1.TokenSecretTokenGenerationTimeAnnotation, hyperv1.TokenSecretExpirationTimestampAnnotation, hyperv1.TokenSecretNodePoolUpgradeTypeAnnotation,
		hyperv1.CoreIgnitionConfigLabel, hyperv1.TunedConfigMapLabel, hyperv1.PerformanceProfileConfigMapLabel, hyperv1.ContainerRuntimeConfigConfigMapLabel,
		hyperv1.KubeletConfigConfigMapLabel, hyperv1.NTOGeneratedMachineConfigLabel, hyperv1.NTOGeneratedPerformanceProfileStatusLabel, hyperv1.MirroredConfigLabel,
		hyperv1.PrivateCAPITypesAnnotation, hyperv1.ManagedByKarpenterLabel, hyperv1.NodePoolConfigAliasAnnotation, hyperv1.NodePoolRollsAnnotation,
		// Those that are no constants of the API, because only one program reads them.
		"hypershift.openshift.io/safe-to-delete-with-cluster", "hypershift.openshift.io/auto-created-for-infra", "hypershift.openshift.io/kubeconfig",
		"hypershift.openshift.io/owned-by", "hypershift.openshift.io/journal", "hypershift.openshift.io/config-hash", "hypershift.openshift.io/encryption-config-hash",
		"hypershift.openshift.io/encryption-rotation", "hypershift.openshift.io/config-content-hash", "hypershift.openshift.io/copy-of",
		"hypershift.openshift.io/monitoring", "hypershift.openshift.io/drain-blocked", "hypershift.openshift.io/drain-started", "hypershift.openshift.io/kubelet-client-key",
		"hypershift.openshift.io/room", "hypershift.openshift.io/pods-have-ended", "hypershift.openshift.io/waiting-for-room", "hypershift.openshift.io/rotate-authority", "hypershift.openshift.io/authority-since",
		"hypershift.openshift.io/supported-versions", "hypershift.openshift.io/internal-route", "hypershift.openshift.io/route-status-writer", "hypershift.openshift.io/payload-version")
	add(Written, onObjects, hyperv1.NodePoolSupportsKubevirtTopologySpreadConstraintsAnnotation, hyperv1.IsKubeVirtRHCOSVolumeLabel,
		"hypershift.openshift.io/capi-provider-agent-rbac", "hypershift.openshift.io/kubevirt-boot-image-role", "hypershift.openshift.io/nodepool-uid", "hypershift.openshift.io/kubevirt-boot-image-hash")
	add(Written, noMigration, hyperv1.PrivateCAPIMigrationInProgressAnnotation, hyperv1.PrivateCAPIMigrationFailedAnnotation,
		hyperv1.PrivateCAPIMigrationLockAnnotation, hyperv1.PrivateCAPIMigrationAckAnnotation, hyperv1.PrivateCAPIMovedAnnotation,
		"hypershift.openshift.io/pre-migration-replicas", "hypershift.openshift.io/migration-copy", "hypershift.openshift.io/original-creation-timestamp")
	add(Heeded, "", hyperv1.PrivateCAPIMigrateAnnotation, hyperv1.PrivateCAPIRollbackAnnotation, hyperv1.PrivateCAPIHoldAnnotation,
		// On ConfigMap private-capi-state.
		"hypershift.openshift.io/migration-mode", "hypershift.openshift.io/migration-paused", "hypershift.openshift.io/migration-limit",
		"hypershift.openshift.io/migration-window")
	add(Heeded, "", hyperv1.NodePoolAllowRolloutAnnotation, hyperv1.DeleteProtectionAnnotation)
	add(Heeded, "", upgrades.ReturnAnnotation)
	add(Written, onObjects, upgrades.ReturnedAnnotation)
	add(Heeded, "", backups.ScheduleAnnotation, backups.KeepAnnotation, backups.VerifyAnnotation, backups.VerifyScheduleAnnotation)
	add(Written, onObjects, backups.VerifiedAtAnnotation, backups.SummaryAnnotation, backups.CloneOfAnnotation)
	return withPayloads(list)
}()

// byPayloads are annotations that components of OpenShift payloads heed, and nothing of Kubernetes releases; a test looks for who reads them.
var byPayloads = []string{
	hyperv1.AWSKMSProviderImage, hyperv1.IBMCloudKMSProviderImage, hyperv1.PortierisImageAnnotation, hyperv1.DisableProfilingAnnotation,
	hyperv1.CertifiedOperatorsCatalogImageAnnotation, hyperv1.CommunityOperatorsCatalogImageAnnotation, hyperv1.RedHatOperatorsCatalogImageAnnotation,
	hyperv1.OLMCatalogsISRegistryOverridesAnnotation, hyperv1.IDPOverridesAnnotationPrefix + "*", hyperv1.OauthLoginURLOverrideAnnotation,
	hyperv1.PrivateIngressControllerAnnotation, hyperv1.IngressControllerLoadBalancerScope, hyperv1.EnsureExistsPullSecretReconciliation,
	hyperv1.DisableAWSNodeTerminationHandlerAnnotation, hyperv1.AWSTerminationHandlerQueueURLAnnotation,
	hyperv1.AWSLoadBalancerHealthProbeModeAnnotation, hyperv1.AzureLoadBalancerHealthProbeModeAnnotation, hyperv1.SharedLoadBalancerHealthProbePathAnnotation,
	hyperv1.SharedLoadBalancerHealthProbePortAnnotation, hyperv1.SwiftPodNetworkInstanceAnnotation, hyperv1.NodePoolHAProxyImageAnnotation,
	hyperv1.CleanupCloudResourcesAnnotation, hyperv1.EnableMetricsForwarding,
}

// withPayloads gives annotations the verdict for OpenShift payloads where it is another.
func withPayloads(list []Entry) []Entry {
	for i := range list {
		switch e := &list[i]; {
		case slices.Contains(byPayloads, e.Path):
			e.Payload = Heeded
		case e.Path == encryptionPlugin:
			e.Payload, e.PayloadText = Refused, "OpenShift payloads have plugins of clouds alone: remove it"
		}
	}
	return list
}
