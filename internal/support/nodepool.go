package support

const (
	noMachines = "on platform None you make the machines: remove it"
	poolCloud  = "this operator makes no machines on a cloud: use platform None, or Local on one machine"
)

var nodePools = Table{Kind: "NodePool", Entries: []Entry{
	{Path: "spec.arch", Verdict: Heeded, By: byPools},
	{Path: "spec.autoScaling", Verdict: Heeded, None: NotHeeded, Text: noMachines, By: byPools},
	{Path: "spec.clusterName", Verdict: Heeded, By: "test internal/nodepool.TestReconcile"},
	{Path: "spec.config", Verdict: Heeded, By: "test internal/nodepool.TestGolden"},
	{Path: "spec.management", Verdict: Heeded, None: NotHeeded, Text: noMachines, By: byPools},
	{Path: "spec.management.autoRepair", Verdict: Heeded, None: NotHeeded, Default: "false", Text: noMachines, By: byPools},
	{Path: "spec.management.upgradeType", Verdict: Heeded, None: NotHeeded, Quiet: true, Text: "on platform None you replace the machines", By: byPools},
	{Path: "spec.nodeDrainTimeout", Verdict: Heeded, None: NotHeeded, Text: noMachines, By: byPools},
	{Path: "spec.nodeLabels", Verdict: Heeded, By: byPools},
	{Path: "spec.nodeVolumeDetachTimeout", Verdict: Heeded, None: NotHeeded, Text: noMachines, By: byPools},
	{Path: "spec.osImageStream", Verdict: NotHeeded, Payload: Heeded, PayloadBy: "test internal/nodepool.TestPayloadHash", Text: "machines of Kubernetes releases boot the image of their platform: remove it"},
	{Path: "spec.pausedUntil", Verdict: Heeded, By: "test internal/nodepool.TestGates"},
	{Path: "spec.platform", Verdict: Refused, Text: poolCloud},
	{Path: "spec.platform.type", Verdict: Refused, Text: poolCloud},
	{Path: "spec.platform.aws", Verdict: Heeded, By: byAWS},
	{Path: "spec.platform.type=AWS", Verdict: Heeded, By: byAWS},
	{Path: "spec.platform.agent", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.azure", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.gcp", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.ibmcloud", Verdict: NotHeeded, Text: "the service makes the machines: remove it"},
	{Path: "spec.platform.kubevirt", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.kubevirt.rootVolume.type", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.openstack", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.powervs", Verdict: Heeded, By: byPlatforms},
	{Path: "spec.platform.type=Agent", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.type=Azure", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.type=GCP", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.type=IBMCloud", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.type=KubeVirt", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.type=OpenStack", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.type=PowerVS", Verdict: Heeded, By: byGolden},
	{Path: "spec.platform.type=Local", Verdict: Heeded, By: byPools},
	{Path: "spec.platform.type=None", Verdict: Heeded, By: byPools},
	{Path: "spec.release", Verdict: Heeded, By: "test internal/nodepool.TestGates"},
	{Path: "spec.replicas", Verdict: Heeded, None: NotHeeded, Default: "0", Text: noMachines, By: byPools},
	{Path: "spec.taints", Verdict: Heeded, By: byPools},
	{Path: "spec.tuningConfig", Verdict: NotHeeded, Payload: Heeded, PayloadBy: "test internal/nodepool.TestTuning", Text: "node tuning is a part of OpenShift: set what you need with MachineConfigs in spec.config"},
}}
