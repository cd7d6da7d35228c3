package iam

// role is what a component of the cluster may do.
type role struct {
	suffix string
	// accounts are service accounts, namespace:name.
	accounts []string
	policy   func(Options) []Statement
	// managed is the policy of ROSA that replaces policy.
	managed string
	// assumes says that it takes on a role of another account when the VPC is there.
	assumes bool
	// wanted is nil for roles that every cluster has.
	wanted func(Options) bool
	into   func(*Output) *string
}

const managedPrefix = "arn:aws:iam::aws:policy/service-role/"

// roles are all, in the order in which they are made.
var roles = []role{
	{
		suffix: "openshift-ingress", accounts: []string{"openshift-ingress-operator:ingress-operator"}, managed: "ROSAIngressOperatorPolicy",
		assumes: true, policy: ingressPolicy, into: func(o *Output) *string { return &o.Roles.IngressARN },
	},
	{
		suffix:   "openshift-image-registry",
		accounts: []string{"openshift-image-registry:cluster-image-registry-operator", "openshift-image-registry:registry"},
		managed:  "ROSAImageRegistryOperatorPolicy", policy: fixed(allow(registryActions)),
		into: func(o *Output) *string { return &o.Roles.ImageRegistryARN },
	},
	{
		suffix: "aws-ebs-csi-driver-controller", accounts: []string{"openshift-cluster-csi-drivers:aws-ebs-csi-driver-controller-sa"},
		managed: "ROSAAmazonEBSCSIDriverOperatorPolicy",
		policy: fixed(allow(storageActions), allow("kms: Decrypt Encrypt GenerateDataKey GenerateDataKeyWithoutPlainText DescribeKey"),
			allow("kms: RevokeGrant CreateGrant ListGrants").when("Bool", "kms:GrantIsForAWSResource", "true")),
		into: func(o *Output) *string { return &o.Roles.StorageARN },
	},
	{
		suffix: "cloud-controller", accounts: []string{"kube-system:kube-controller-manager"}, managed: "ROSAKubeControllerPolicy",
		policy: fixed(allow(cloudControllerActions)), into: func(o *Output) *string { return &o.Roles.KubeCloudControllerARN },
	},
	{
		suffix: "node-pool", accounts: []string{"kube-system:capa-controller-manager"}, managed: "ROSANodePoolManagementPolicy",
		policy: fixed(
			allow(nodePoolActions),
			allow("iam: CreateServiceLinkedRole",
				"arn:*:iam::*:role/aws-service-role/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing").
				when("StringLike", "iam:AWSServiceName", "elasticloadbalancing.amazonaws.com"),
			allow("iam: PassRole", "arn:*:iam::*:role/*-worker-role"),
			allow("kms: Decrypt ReEncrypt GenerateDataKeyWithoutPlainText DescribeKey"),
			allow("kms: CreateGrant").when("Bool", "kms:GrantIsForAWSResource", "true")),
		into: func(o *Output) *string { return &o.Roles.NodePoolManagementARN },
	},
	{
		suffix: "control-plane-operator", accounts: []string{"kube-system:control-plane-operator"}, managed: "ROSAControlPlaneOperatorPolicy",
		assumes: true, policy: controlPlanePolicy, into: func(o *Output) *string { return &o.Roles.ControlPlaneOperatorARN },
	},
	{
		suffix:   "cloud-network-config-controller",
		accounts: []string{"openshift-cloud-network-config-controller:cloud-network-config-controller"},
		managed:  "ROSACloudNetworkConfigOperatorPolicy",
		policy: fixed(allow(`ec2: DescribeInstances DescribeInstanceStatus DescribeInstanceTypes UnassignPrivateIpAddresses AssignPrivateIpAddresses
			UnassignIpv6Addresses AssignIpv6Addresses DescribeSubnets DescribeNetworkInterfaces`)),
		into: func(o *Output) *string { return &o.Roles.NetworkARN },
	},
	{
		suffix: "kms-provider", accounts: []string{"kube-system:kms-provider"}, managed: "ROSAKMSProviderPolicy",
		policy: func(o Options) []Statement {
			return []Statement{allow("kms: Encrypt Decrypt ReEncrypt* GenerateDataKey* DescribeKey", o.KMSKeyARN)}
		},
		wanted: func(o Options) bool { return o.KMSKeyARN != "" },
		into:   func(o *Output) *string { return &o.KMSProviderRoleARN },
	},
	{
		suffix: "karpenter", accounts: []string{"kube-system:karpenter"}, policy: fixed(karpenterPolicy()...),
		wanted: func(o Options) bool { return o.AutoNode },
		into:   func(o *Output) *string { return &o.KarpenterRoleARN },
	},
}

func fixed(statements ...Statement) func(Options) []Statement {
	return func(Options) []Statement { return statements }
}

func hostedZone(id string) string { return "arn:aws:route53:::hostedzone/" + id }

func ingressPolicy(o Options) []Statement {
	zones := []string{hostedZone(o.PublicZoneID)}
	if !o.SharedVPC {
		zones = append(zones, hostedZone(o.PrivateZoneID))
	}
	return []Statement{
		allow("elasticloadbalancing: DescribeLoadBalancers tag: GetResources route53: ListHostedZones"),
		allow("route53: ChangeResourceRecordSets", zones...),
	}
}

func controlPlanePolicy(o Options) []Statement {
	if o.SharedVPC {
		return []Statement{allow(controlPlaneActions)}
	}
	return []Statement{
		allow(controlPlaneEndpoints + controlPlaneActions),
		allow("route53: ListHostedZones"),
		allow("route53: ChangeResourceRecordSets ListResourceRecordSets", hostedZone(o.LocalZoneID)),
	}
}

const (
	controlPlaneEndpoints = `ec2: CreateVpcEndpoint ModifyVpcEndpoint DeleteVpcEndpoints `
	controlPlaneActions   = `ec2: DescribeVpcEndpoints CreateTags CreateSecurityGroup AuthorizeSecurityGroupIngress
		AuthorizeSecurityGroupEgress DeleteSecurityGroup RevokeSecurityGroupIngress RevokeSecurityGroupEgress DescribeSecurityGroups DescribeVpcs
		DescribeSubnets `
	registryActions = `s3: CreateBucket DeleteBucket PutBucketTagging GetBucketTagging PutBucketPublicAccessBlock GetBucketPublicAccessBlock
		PutEncryptionConfiguration GetEncryptionConfiguration PutLifecycleConfiguration GetLifecycleConfiguration GetBucketLocation ListBucket
		GetObject PutObject DeleteObject ListBucketMultipartUploads AbortMultipartUpload ListMultipartUploadParts`
	storageActions = `ec2: AttachVolume CreateSnapshot CreateTags CreateVolume DeleteSnapshot DeleteTags DeleteVolume DescribeInstances
		DescribeSnapshots DescribeTags DescribeVolumes DescribeVolumesModifications DetachVolume ModifyVolume DescribeAvailabilityZones
		EnableFastSnapshotRestores DescribeInstanceTypes DescribeVolumeStatus CopyVolumes LockSnapshot`
	cloudControllerActions = `autoscaling: DescribeAutoScalingGroups DescribeLaunchConfigurations DescribeTags
		ec2: DescribeAvailabilityZones DescribeInstances DescribeImages DescribeRegions DescribeRouteTables DescribeSecurityGroups DescribeSubnets
		DescribeVolumes DescribeVpcs CreateSecurityGroup CreateTags CreateVolume ModifyInstanceAttribute ModifyVolume AttachVolume
		AuthorizeSecurityGroupIngress CreateRoute DeleteRoute DeleteSecurityGroup DeleteVolume DetachVolume RevokeSecurityGroupIngress
		elasticloadbalancing: AddTags AttachLoadBalancerToSubnets ApplySecurityGroupsToLoadBalancer CreateLoadBalancer CreateLoadBalancerPolicy
		CreateLoadBalancerListeners ConfigureHealthCheck DeleteLoadBalancer DeleteLoadBalancerListeners DescribeLoadBalancers
		DescribeLoadBalancerAttributes DetachLoadBalancerFromSubnets DeregisterInstancesFromLoadBalancer ModifyLoadBalancerAttributes
		ModifyTargetGroupAttributes RegisterInstancesWithLoadBalancer SetLoadBalancerPoliciesForBackendServer CreateListener CreateTargetGroup
		DeleteListener DeleteTargetGroup DeregisterTargets DescribeListeners DescribeLoadBalancerPolicies DescribeTargetGroups
		DescribeTargetGroupAttributes DescribeTargetHealth ModifyListener ModifyTargetGroup RegisterTargets SetLoadBalancerPoliciesOfListener
		SetSecurityGroups iam: CreateServiceLinkedRole kms: DescribeKey`
	nodePoolActions = `ec2: AssociateRouteTable AttachInternetGateway AuthorizeSecurityGroupIngress CreateInternetGateway CreateNatGateway
		CreateRoute CreateRouteTable CreateSecurityGroup CreateSubnet CreateTags DeleteInternetGateway DeleteNatGateway DeleteRouteTable
		DeleteSecurityGroup DeleteSubnet DeleteTags DescribeAccountAttributes DescribeAddresses DescribeAvailabilityZones DescribeImages
		DescribeInstances DescribeInstanceTypes DescribeInternetGateways DescribeNatGateways DescribeNetworkInterfaces
		DescribeNetworkInterfaceAttribute DescribeRouteTables DescribeSecurityGroups DescribeSubnets DescribeVpcs DescribeDhcpOptions
		DescribeVpcAttribute DescribeVolumes DetachInternetGateway DisassociateRouteTable DisassociateAddress ModifyInstanceAttribute
		ModifyNetworkInterfaceAttribute ModifySubnetAttribute RevokeSecurityGroupIngress RunInstances TerminateInstances CreateLaunchTemplate
		CreateLaunchTemplateVersion DescribeLaunchTemplates DescribeLaunchTemplateVersions DeleteLaunchTemplate DeleteLaunchTemplateVersions
		tag: GetResources sqs: DeleteMessage ReceiveMessage`
)

const (
	karpenterPool  = "karpenter.sh/nodepool"
	karpenterClass = "karpenter.k8s.aws/ec2nodeclass"
)

// ec2ARNs are resources of EC2 of all regions and accounts.
func ec2ARNs(kinds ...string) []string {
	var list []string
	for _, kind := range kinds {
		list = append(list, "arn:*:ec2:*:*:"+kind+"/*")
	}
	return list
}

// karpenterPolicy lets Karpenter make machines, and change only those that it made.
func karpenterPolicy() []Statement {
	made := ec2ARNs("fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request")
	profiles := "arn:*:iam::*:instance-profile/*"
	return []Statement{
		allow("ec2: RunInstances CreateFleet", "arn:*:ec2:*::image/*", "arn:*:ec2:*::snapshot/*", "arn:*:ec2:*:*:security-group/*", "arn:*:ec2:*:*:subnet/*").
			named("AllowScopedEC2InstanceAccessActions"),
		allow("ec2: RunInstances CreateFleet", ec2ARNs("launch-template")...).named("AllowScopedEC2LaunchTemplateAccessActions"),
		allow("ec2: RunInstances CreateFleet CreateLaunchTemplate", made...).named("AllowScopedEC2InstanceActionsWithTags").
			when("StringLike", "aws:RequestTag/"+karpenterPool, "*"),
		allow("ec2: CreateTags", made...).named("AllowScopedResourceCreationTagging").
			when("StringEquals", "ec2:CreateAction", []string{"RunInstances", "CreateFleet", "CreateLaunchTemplate"}).
			when("StringLike", "aws:RequestTag/"+karpenterPool, "*"),
		allow("ec2: CreateTags", ec2ARNs("instance")...).named("AllowScopedResourceTagging").
			when("StringLike", "aws:ResourceTag/"+karpenterPool, "*"),
		allow("ec2: TerminateInstances DeleteLaunchTemplate", ec2ARNs("instance", "launch-template")...).named("AllowScopedDeletion").
			when("StringLike", "aws:ResourceTag/"+karpenterPool, "*"),
		allow(`ec2: DescribeCapacityReservations DescribeImages DescribeInstances DescribeInstanceTypeOfferings DescribeInstanceTypes
			DescribeLaunchTemplates DescribeSecurityGroups DescribeSpotPriceHistory DescribeSubnets`).named("AllowRegionalReadActions"),
		allow("ssm: GetParameter", "arn:*:ssm:*::parameter/aws/service/*").named("AllowSSMReadActions"),
		allow("pricing: GetProducts").named("AllowPricingReadActions"),
		allow("sqs: DeleteMessage GetQueueUrl ReceiveMessage").named("AllowInterruptionQueueActions"),
		allow("iam: PassRole", "arn:*:iam::*:role/*").named("AllowPassingInstanceRole").
			when("StringEquals", "iam:PassedToService", []string{"ec2.amazonaws.com", "ec2.amazonaws.com.cn"}),
		allow("iam: CreateInstanceProfile", profiles).named("AllowScopedInstanceProfileCreationActions").
			when("StringLike", "aws:RequestTag/"+karpenterClass, "*"),
		allow("iam: TagInstanceProfile", profiles).named("AllowScopedInstanceProfileTagActions").
			when("StringLike", "aws:ResourceTag/"+karpenterClass, "*").when("StringLike", "aws:RequestTag/"+karpenterClass, "*"),
		allow("iam: AddRoleToInstanceProfile RemoveRoleFromInstanceProfile DeleteInstanceProfile", profiles).named("AllowScopedInstanceProfileActions").
			when("StringLike", "aws:ResourceTag/"+karpenterClass, "*"),
		allow("iam: GetInstanceProfile", profiles).named("AllowInstanceProfileReadActions"),
		allow("iam: ListInstanceProfiles").named("AllowUnscopedInstanceProfileListAction"),
	}
}

// workerPolicy is what every machine may do.
func workerPolicy() Document { return document(allow("ec2: DescribeInstances DescribeRegions")) }

// sharedRoute53Policy and sharedEndpointPolicy are what the cluster may do in the account of its VPC.
func sharedRoute53Policy() Document {
	return document(allow(`route53: ListHostedZones ListHostedZonesByName ChangeTagsForResource GetAccountLimit GetChange GetHostedZone
		ListTagsForResource UpdateHostedZoneComment ChangeResourceRecordSets ListResourceRecordSets tag: GetResources UntagResources`))
}

func sharedEndpointPolicy() Document {
	return document(allow(controlPlaneEndpoints + controlPlaneActions))
}
