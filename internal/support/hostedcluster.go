package support

// Texts that several entries share.
const (
	openShiftOnly = "it configures a part of OpenShift, which Kubernetes releases lack: remove it"
	noCloud       = "this operator does not know that platform"
	onLocalOnly   = "nodes are made when pods need them on platform Local, by Kubernetes releases with Karpenter: size NodePools with spec.autoScaling"
	noRouter      = "nothing here serves Routes: use NodePort"
)

// Packages whose tests prove that they heed a field.
const (
	byComponents    = "controlplane"
	byPKI           = "hostedcontrolplane"
	byCluster       = "hostedcluster"
	byPools         = "nodepool"
	byHosted        = "configoperator"
	byIgnition      = "ignition"
	byAutoscaling   = byComponents
	byAWS           = "test internal/platform/aws.TestFields"
	byAWSController = "test internal/controlplane/openshift/cloudcontrollermanager.TestAWSConfig"
	byPlatforms     = "platform"
	byGolden        = "test internal/platform.TestGolden"
	byParts         = "test internal/cli/render.TestPlatformFieldsOfPayload"
)

var hostedClusters = Table{Kind: "HostedCluster", Entries: []Entry{
	{Path: "spec.additionalTrustBundle", Verdict: Heeded, By: byCluster, Text: "machines trust it, and the operators when they read releases"},
	{Path: "spec.auditWebhook", Verdict: Heeded, By: byComponents},
	{Path: "spec.autoNode", Verdict: Heeded, None: NotHeeded, Payload: NotHeeded, By: "test internal/controlplane/karpenter.TestWanted", Text: onLocalOnly},
	{Path: "spec.autoscaling", Verdict: Heeded, By: byAutoscaling},
	{Path: "spec.autoscaling.maxPodGracePeriod", Verdict: NotHeeded, Payload: Heeded, Text: "the autoscaler of Kubernetes releases leaves draining to Cluster API: set spec.nodeDrainTimeout of the NodePool"},
	{Path: "spec.capabilities", Verdict: NotHeeded, Payload: Heeded, Text: openShiftOnly},
	{Path: "spec.channel", Verdict: NotHeeded, Payload: Heeded, Text: "Kubernetes releases have no update service: choose releases by spec.release.image"},
	{Path: "spec.clusterID", Verdict: Heeded, By: "test internal/controlplane/component.TestAdaptMonitor"},
	{Path: "spec.configuration.apiServer.additionalCORSAllowedOrigins", Verdict: Heeded, By: byComponents},
	{Path: "spec.configuration.apiServer.audit", Verdict: Heeded, By: byComponents},
	{Path: "spec.configuration.apiServer.clientCA", Verdict: Heeded, By: byPKI},
	{Path: "spec.configuration.apiServer.encryption", Verdict: NotHeeded, Text: "encryption of what etcd stores is asked for by spec.secretEncryption: use that"},
	{Path: "spec.configuration.apiServer.servingCerts", Verdict: Heeded, By: byComponents},
	{Path: "spec.configuration.apiServer.tlsAdherence", Verdict: NotHeeded, Text: "all servers of the control plane follow tlsSecurityProfile: remove it"},
	{Path: "spec.configuration.apiServer.tlsSecurityProfile", Verdict: Heeded, By: byComponents},
	{Path: "spec.configuration.apiServer.tlsSecurityProfile.intermediate", Verdict: Heeded, By: "test internal/controlplane/settings.TestTLS"},
	{Path: "spec.configuration.apiServer.tlsSecurityProfile.modern", Verdict: Heeded, By: "test internal/controlplane/settings.TestTLS"},
	{Path: "spec.configuration.apiServer.tlsSecurityProfile.old", Verdict: Heeded, By: "test internal/controlplane/settings.TestTLS"},
	{Path: "spec.configuration.apiServer.tlsSecurityProfile.custom.groups", Verdict: NotHeeded, Text: "the servers of Kubernetes have no flag for groups, and offer those of Go: remove it"},
	{Path: "spec.configuration.authentication.oauthMetadata", Verdict: NotHeeded, Payload: Heeded, Text: openShiftOnly},
	{Path: "spec.configuration.authentication.oidcProviders", Verdict: Heeded, By: byComponents},
	{Path: "spec.configuration.authentication.oidcProviders[].externalClaimsSources", Verdict: NotHeeded, Text: "kube-apiserver takes claims from the token alone: have the issuer put them there"},
	{Path: "spec.configuration.authentication.oidcProviders[].name", Verdict: Heeded, By: "test internal/hostedcluster/validate.TestAuthenticationIsValid"},
	{Path: "spec.configuration.authentication.oidcProviders[].oidcClients", Verdict: NotHeeded, Payload: Heeded, Text: openShiftOnly},
	{Path: "spec.configuration.authentication.serviceAccountIssuer", Verdict: NotHeeded, Text: "the issuer of ServiceAccount tokens is spec.issuerURL: set that"},
	{Path: "spec.configuration.authentication.type", Verdict: Heeded, By: byComponents},
	{Path: "spec.configuration.authentication.type=IntegratedOAuth", Verdict: NotHeeded, Payload: Heeded, Text: "Kubernetes releases have no OAuth server: use OIDC"},
	{Path: "spec.configuration.authentication.webhookTokenAuthenticator", Verdict: Heeded, By: byComponents, Payload: NotHeeded,
		PayloadText: "OpenShift's API server for OAuth is the webhook that kube-apiserver asks about tokens: use OIDC"},
	{Path: "spec.configuration.authentication.webhookTokenAuthenticators", Verdict: NotHeeded, Text: "it is never used: use OIDC"},
	{Path: "spec.configuration.featureGate.customNoUpgrade", Verdict: Heeded, By: byComponents},
	{Path: "spec.configuration.featureGate.featureSet", Verdict: Heeded, By: byComponents},
	{Path: "spec.configuration.featureGate.featureSet=DevPreviewNoUpgrade", Verdict: NotHeeded, Payload: Heeded, Text: openShiftGates},
	{Path: "spec.configuration.featureGate.featureSet=OKD", Verdict: NotHeeded, Payload: Heeded, Text: openShiftGates},
	{Path: "spec.configuration.featureGate.featureSet=TechPreviewNoUpgrade", Verdict: NotHeeded, Payload: Heeded, Text: openShiftGates},
	{Path: "spec.configuration.image", Verdict: NotHeeded, Payload: Heeded, Text: "machines of Kubernetes releases don't read it: set mirrors in spec.imageContentSources, and registries with a MachineConfig in spec.config of the NodePool"},
	{Path: "spec.configuration.ingress", Verdict: NotHeeded, Payload: Heeded, Text: openShiftOnly},
	{Path: "spec.configuration.network.clusterNetwork", Verdict: NotHeeded, Text: "it is set by spec.networking.clusterNetwork: use that"},
	{Path: "spec.configuration.network.externalIP", Verdict: NotHeeded, Payload: Heeded, Text: "Kubernetes releases have no policy for external addresses of Services: use a ValidatingAdmissionPolicy in the hosted cluster"},
	{Path: "spec.configuration.network.networkDiagnostics", Verdict: NotHeeded, Payload: Heeded, Text: openShiftOnly},
	{Path: "spec.configuration.network.networkObservability", Verdict: NotHeeded, Payload: NotHeeded, PayloadText: "nothing installs the observability of networks: remove it", Text: openShiftOnly},
	{Path: "spec.configuration.network.networkType", Verdict: NotHeeded, Text: "it is set by spec.networking.networkType: use that"},
	{Path: "spec.configuration.network.serviceNetwork", Verdict: NotHeeded, Text: "it is set by spec.networking.serviceNetwork: use that"},
	{Path: "spec.configuration.network.serviceNodePortRange", Verdict: Heeded, By: byComponents},
	{Path: "spec.configuration.oauth", Verdict: NotHeeded, Payload: Heeded, Text: "Kubernetes releases have no OAuth server: use OIDC in spec.configuration.authentication"},
	{Path: "spec.configuration.operatorhub", Verdict: NotHeeded, Payload: Heeded, Text: openShiftOnly},
	{Path: "spec.configuration.proxy", Verdict: Heeded, By: byIgnition, Text: "machines use it; programs of the control plane reach everything without one"},
	{Path: "spec.configuration.proxy.readinessEndpoints", Verdict: NotHeeded, Payload: Heeded, Text: "nobody asks through the proxy before it is used: remove it"},
	{Path: "spec.configuration.proxy.trustedCA", Verdict: Heeded, By: byCluster},
	{Path: "spec.configuration.scheduler", Verdict: NotHeeded, Payload: Heeded, Text: "the scheduler heeds the profile alone: remove it"},
	{Path: "spec.configuration.scheduler.profile", Verdict: Heeded, By: byComponents},
	{Path: "spec.controlPlaneRelease", Verdict: Heeded, By: byComponents},
	{Path: "spec.controllerAvailabilityPolicy", Verdict: Heeded, By: byComponents},
	{Path: "spec.dns.baseDomain", Verdict: NotHeeded, Payload: Heeded, Default: "example.com", Text: "no record is made for the hosted cluster: name endpoints in spec.services[].servicePublishingStrategy.loadBalancer.hostname, with external-dns"},
	{Path: "spec.dns", Verdict: NotHeeded, Payload: Heeded, Text: "no record is made for the hosted cluster: name endpoints in spec.services[].servicePublishingStrategy.loadBalancer.hostname, with external-dns"},
	{Path: "spec.etcd.managementType", Verdict: Heeded, By: byComponents},
	{Path: "spec.etcd.managed", Verdict: Heeded, By: byComponents},
	{Path: "spec.etcd.managed.backup", Verdict: Heeded, By: "test internal/etcdbackup.TestStorageKeys"},
	{Path: "spec.etcd.managed.storage.type", Verdict: Heeded, By: "test internal/support.TestLeaves"},
	{Path: "spec.etcd.unmanaged", Verdict: Heeded, By: byComponents},
	{Path: "spec.etcd.unmanaged.shards[].name", Verdict: Heeded, By: "test internal/controlplane/etcd/shards.TestMistakes"},
	{Path: "spec.etcd.unmanaged.tls", Verdict: Heeded, By: byCluster},
	{Path: "spec.fips", Verdict: Refused, Payload: Heeded, Text: "neither the control plane nor machines of Kubernetes releases use validated cryptography: leave it out"},
	{Path: "spec.imageContentSources", Verdict: Heeded, By: byComponents},
	{Path: "spec.infraID", Verdict: Heeded, By: byComponents},
	{Path: "spec.infrastructureAvailabilityPolicy", Verdict: NotHeeded, Payload: Heeded, Default: "SingleReplica", Text: "what runs on nodes of Kubernetes releases has one replica for each node, or two: remove it"},
	{Path: "spec.issuerURL", Verdict: Heeded, By: byComponents},
	{Path: "spec.kubeAPIServerDNSName", Verdict: Heeded, By: byPKI},
	{Path: "spec.labels", Verdict: Heeded, By: byComponents},
	{Path: "spec.monitoring.metricsForwarding", Verdict: NotHeeded, Payload: Heeded, Text: openShiftOnly},
	{Path: "spec.monitoring.metricsForwarding.mode=None", Verdict: Heeded, By: "test internal/support.TestFindings"},
	{Path: "spec.monitoring.metricsSet", Verdict: Heeded, By: "test internal/controlplane/component.TestAdaptMonitor"},
	{Path: "spec.networking.allocateNodeCIDRs", Verdict: Heeded, By: byComponents},
	{Path: "spec.networking.apiServer", Verdict: Heeded, By: byPKI},
	{Path: "spec.networking.clusterNetwork", Verdict: Heeded, By: byComponents},
	{Path: "spec.networking.machineNetwork", Verdict: Heeded, By: byIgnition},
	{Path: "spec.networking.networkType", Verdict: Heeded, By: byHosted},
	{Path: "spec.networking.networkType=Calico", Verdict: NotHeeded, Payload: Heeded, Text: otherNetwork},
	{Path: "spec.networking.networkType=OpenShiftSDN", Verdict: NotHeeded, Payload: Heeded, Text: otherNetwork},
	{Path: "spec.networking.networkType=OVNKubernetes", Verdict: NotHeeded, Payload: Heeded, Text: otherNetwork},
	{Path: "spec.networking.serviceNetwork", Verdict: Heeded, By: byComponents},
	{Path: "spec.nodeSelector", Verdict: Heeded, By: byComponents},
	{Path: "spec.olmCatalogPlacement", Verdict: NotHeeded, Payload: Heeded, Default: "management", Text: openShiftOnly},
	{Path: "spec.operatorConfiguration", Verdict: NotHeeded, Payload: Heeded, Text: openShiftOnly},
	{Path: "spec.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork", Verdict: NotHeeded, Payload: Heeded, Default: "false", Text: openShiftOnly},
	{Path: "spec.operatorConfiguration.clusterVersionOperator.operatorLogLevel", Verdict: NotHeeded, Payload: NotHeeded, PayloadText: "the log level of the cluster-version-operator is that of its payload: remove it", Default: "Normal", Text: openShiftOnly},
	{Path: "spec.pausedUntil", Verdict: Heeded, By: "test internal/hostedcluster.TestPause"},
	{Path: "spec.platform", Verdict: Refused, Text: noCloud},
	{Path: "spec.platform.type", Verdict: Refused, Text: noCloud},
	{Path: "spec.platform.aws", Verdict: Heeded, By: byAWS},
	{Path: "spec.platform.aws.additionalAllowedPrincipals", Verdict: Heeded, By: "test internal/platform/aws/privatelink.TestPrincipals"},
	{Path: "spec.platform.aws.cloudProviderConfig.subnet", Verdict: Heeded, By: byAWSController, Text: "for OpenShift releases"},
	{Path: "spec.platform.aws.cloudProviderConfig.subnet.filters", Verdict: NotHeeded, Text: "the cloud controller knows a subnet by its ID alone: write subnet.id"},
	{Path: "spec.platform.aws.cloudProviderConfig.zone", Verdict: Heeded, By: byAWSController, Text: "for OpenShift releases"},
	{Path: "spec.platform.aws.endpointAccess", Verdict: Heeded, Default: "Public", By: "test internal/platform/aws.TestSupported", Text: "private access is for OpenShift releases, with an operator installed by --private-platform AWS"},
	{Path: "spec.platform.aws.multiArch", Verdict: NotHeeded, Quiet: true, Text: "pools of any architecture that the release has are made"},
	{Path: "spec.platform.aws.rolesRef.imageRegistryARN", Verdict: Heeded, By: byParts, Text: "for OpenShift releases"},
	{Path: "spec.platform.aws.rolesRef.ingressARN", Verdict: Heeded, By: byParts, Text: "for OpenShift releases"},
	{Path: "spec.platform.aws.serviceEndpoints", Verdict: Heeded, By: "test internal/controlplane/component.TestAWSEndpoints", Text: "for what calls AWS in the control plane's namespace; the hypershift-operator and the CLI go by AWS_ENDPOINT_URL"},
	{Path: "spec.platform.aws.sharedVPC", Verdict: Heeded, By: "test internal/platform/aws/privatelink.TestAccount", Text: "the endpoint of a private cluster is made with these roles, and its ingress operator takes one on; between two real accounts it is unproved"},
	{Path: "spec.platform.aws.terminationHandlerQueueURL", Verdict: Heeded, By: "test internal/controlplane/openshift/awsnodeterminationhandler.TestQueue", Text: "for OpenShift releases, which bring the termination handler"},
	{Path: "spec.platform.type=AWS", Verdict: Heeded, By: byAWS},
	{Path: "spec.platform.agent", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.azure", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.azure.azureAuthenticationConfig", Verdict: Heeded, By: byParts, Text: "for OpenShift releases"},
	{Path: "spec.platform.azure.azureAuthenticationConfig.azureAuthenticationConfigType", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.azure.azureAuthenticationConfig.managedIdentities.controlPlane.nodePoolManagement.credentialsSecretName", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.azure.azureAuthenticationConfig.workloadIdentities.controlPlaneOperator", Verdict: Heeded, By: "test internal/platform/azure.TestPrivateLink", Text: "as whom private endpoints are made, by OpenShift releases"},
	{Path: "spec.platform.azure.azureAuthenticationConfig.workloadIdentities.imageRegistry", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.azure.azureAuthenticationConfig.workloadIdentities.ingress", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.azure.azureAuthenticationConfig.workloadIdentities.network", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.azure.azureAuthenticationConfig.workloadIdentities.nodePoolManagement", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.azure.containerRegistry.credentials.type", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.azure.private", Verdict: Heeded, By: "test internal/platform/privatelinks.TestBalancers", Text: "private access is for OpenShift releases, with an operator installed by --private-platform Azure"},
	{Path: "spec.platform.azure.private.type", Verdict: Heeded, By: "test internal/platform/azure.TestMistakes"},
	{Path: "spec.platform.gcp", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.gcp.endpointAccess", Verdict: NotHeeded, Default: "Private", Text: "nothing here makes endpoints of Private Service Connect: publish the API server by LoadBalancer"},
	{Path: "spec.platform.ibmcloud", Verdict: Heeded, By: "test internal/platform.TestProviderType"},
	{Path: "spec.platform.kubevirt", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.kubevirt.baseDomainPassthrough", Verdict: NotHeeded, Payload: Heeded, Text: "a Kubernetes release has no router that a Route could lead to: set spec.dns.baseDomain",
		By: "test internal/platform/kubevirt.TestBaseDomain"},
	{Path: "spec.platform.kubevirt.generateID", Verdict: Heeded, By: "test internal/platform.TestGeneratedID"},
	{Path: "spec.platform.kubevirt.storageDriver", Verdict: Heeded, By: byParts, Text: "for OpenShift releases"},
	{Path: "spec.platform.openstack", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.openstack.ingressFloatingIP", Verdict: Heeded, By: "test internal/configoperator/openshift.TestProperties", Text: "for OpenShift releases"},
	{Path: "spec.platform.powervs", Verdict: Heeded, By: byParts, Text: "for OpenShift releases"},
	{Path: "spec.platform.powervs.cisInstanceCRN", Verdict: Heeded, By: "test internal/configoperator/openshift.TestProperties", Text: "for OpenShift releases"},
	{Path: "spec.platform.powervs.imageRegistryOperatorCloudCreds", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.powervs.ingressOperatorCloudCreds", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.powervs.kubeCloudControllerCreds", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.powervs.nodePoolManagementCreds", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.powervs.region", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.powervs.serviceInstanceID", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.powervs.storageOperatorCloudCreds", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.powervs.subnet", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.powervs.vpc.zone", Verdict: NotHeeded, Quiet: true, Text: "nothing asks for the zone of the VPC: its subnet is in one"},
	{Path: "spec.platform.type=Agent", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.type=Azure", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.type=GCP", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.type=IBMCloud", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.type=KubeVirt", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.type=OpenStack", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.type=PowerVS", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.type=Local", Verdict: Heeded, By: byComponents},
	{Path: "spec.platform.type=None", Verdict: Heeded, By: byComponents},
	{Path: "spec.pullSecret", Verdict: Heeded, By: byCluster},
	{Path: "spec.release", Verdict: Heeded, By: byComponents},
	{Path: "spec.secretEncryption.type", Verdict: Heeded, By: byComponents},
	{Path: "spec.secretEncryption.type=kms", Verdict: Refused, Text: noKMS},
	{Path: "spec.secretEncryption.aescbc", Verdict: Heeded, By: byComponents},
	{Path: "spec.secretEncryption.kms", Verdict: Refused, Text: noKMS},
	{Path: "spec.serviceAccountSigningKey", Verdict: Heeded, By: byCluster},
	{Path: "spec.services[]", Verdict: Heeded, By: byPKI, Text: "without a published Konnectivity there is no tunnel to nodes, and without Ignition no machine can boot"},
	{Path: "spec.services[APIServer].servicePublishingStrategy.type=Route", Verdict: Refused, Payload: Heeded, Text: "nothing here serves Routes: use LoadBalancer or NodePort"},
	{Path: "spec.services[OAuthServer]", Verdict: NotHeeded, Payload: Heeded, Quiet: true, Text: "Kubernetes releases have no OAuth server, so there is nothing to publish"},
	{Path: "spec.services[OIDC]", Verdict: NotHeeded, Quiet: true, Text: "Kubernetes releases publish no OIDC documents: leave the entry out"},
	{Path: "spec.services[OVNSbDb]", Verdict: NotHeeded, Text: "Kubernetes releases have no OVN: leave the entry out"},
	{Path: "spec.services[Ignition].servicePublishingStrategy.type=LoadBalancer", Verdict: Refused, Text: "the ignition server has no load balancer: use NodePort"},
	{Path: "spec.services[Ignition].servicePublishingStrategy.type=Route", Verdict: Refused, Payload: Heeded, Text: noRouter},
	{Path: "spec.services[Konnectivity].servicePublishingStrategy.type=Route", Verdict: Refused, Payload: Heeded, Text: noRouter + " or LoadBalancer"},
	{Path: "spec.services[].servicePublishingStrategy.route", Verdict: NotHeeded, Payload: Heeded, Quiet: true, Text: noRouter},
	{Path: "spec.services[].servicePublishingStrategy.type=S3", Verdict: Refused, Text: "nothing is published in S3: use NodePort or LoadBalancer"},
	{Path: "spec.sshKey", Verdict: Heeded, By: byCluster, Text: "machines get it; those of platform Local run no SSH server"},
	{Path: "spec.tolerations", Verdict: Heeded, By: byComponents},
	{Path: "spec.updateService", Verdict: NotHeeded, Payload: Heeded, Text: "Kubernetes releases have no update service: choose releases by spec.release.image"},
}, Rules: []Rule{
	{Entry: Entry{Path: "spec.networking.apiServer.allowedCIDRBlocks without a load balancer", Verdict: NotHeeded,
		Text: "only load balancers keep callers out by their address: publish APIServer by LoadBalancer, or have a firewall do it"}, Applies: allowedWithoutLoadBalancer},
	{Entry: Entry{Path: "spec.autoNode with a karpenter.platform other than Local", Verdict: NotHeeded, Payload: NotHeeded, Text: onLocalOnly}, Applies: autoNodeElsewhere},
}}

// autoNodeElsewhere finds a spec.autoNode of another platform. What the hosted cluster's own platform has to do with it, condition AutoNodeEnabled says.
func autoNodeElsewhere(spec map[string]any) (string, bool) {
	node, _ := spec["autoNode"].(map[string]any)
	provisioner, _ := node["provisionerConfig"].(map[string]any)
	karpenter, _ := provisioner["karpenter"].(map[string]any)
	platform, _ := spec["platform"].(map[string]any)
	if node == nil || karpenter["platform"] == "Local" || platform["type"] == "None" { // which is told already
		return "", false
	}
	return "spec.autoNode", true
}

func allowedWithoutLoadBalancer(spec map[string]any) (string, bool) {
	networking, _ := spec["networking"].(map[string]any)
	api, _ := networking["apiServer"].(map[string]any)
	if blocks, _ := api["allowedCIDRBlocks"].([]any); len(blocks) == 0 {
		return "", false
	}
	services, _ := spec["services"].([]any)
	for _, s := range services {
		entry, _ := s.(map[string]any)
		strategy, _ := entry["servicePublishingStrategy"].(map[string]any)
		if entry["service"] == "APIServer" && strategy["type"] != "LoadBalancer" {
			return "spec.networking.apiServer.allowedCIDRBlocks", true
		}
	}
	return "", false
}

const (
	openShiftGates = "it names features of OpenShift: name gates of Kubernetes in customNoUpgrade, with featureSet CustomNoUpgrade"
	otherNetwork   = "Kubernetes releases have no such network, and nodes are not ready until you install one: for the network that the release has, make the cluster with networkType Other and allocateNodeCIDRs Enabled"
	noKMS          = "no key management service is supported: use type aescbc"
)
