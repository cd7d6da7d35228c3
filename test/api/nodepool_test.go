package api_test

import "testing"

const baseNodePool = `
apiVersion: hypershift.openshift.io/v1beta1
kind: NodePool
metadata: {name: demo}
spec:
  clusterName: demo
  platform: {type: None}
  release: {image: "registry.example.com/release:1.36.3"}
  management: {upgradeType: Replace}
`

// aws is a NodePool patch for the platform AWS with more members of the platform.
func aws(more string) string {
	return `spec: {platform: {type: AWS, aws: {instanceType: m5.large, subnet: {id: subnet-1}` + more + `}}}`
}

const azurePool = `
apiVersion: hypershift.openshift.io/v1beta1
kind: NodePool
metadata: {name: demo}
spec:
  clusterName: demo
  platform:
    type: Azure
    azure:
      vmSize: Standard_D4s_v5
      image: {type: ImageID, imageID: image}
      osDisk: {}
      subnetID: /subscriptions/6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b11/resourceGroups/group/providers/Microsoft.Network/virtualNetworks/network/subnets/subnet
  release: {image: "registry.example.com/release:1.36.3"}
  management: {upgradeType: Replace}
`

func TestNodePoolCreate(t *testing.T) {
	judge(t, baseNodePool, map[string]verdict{
		"When only what is required is given it should be accepted": {},
		"When the platform is Local it should be accepted":          {object: `spec: {platform: {type: Local}}`},
		"When there is no cluster name it should be rejected":       {object: `spec: {clusterName: null}`, reject: "Required value", field: "spec.clusterName"},
		"When the cluster name has a period it should be rejected":  {object: `spec: {clusterName: a.b}`, reject: "clusterName must consist of"},
		"When there is no management it should be rejected":         {object: `spec: {management: null}`, reject: "Required value", field: "spec.management"},
		"When replicas and autoscaling are both given it should be rejected": {
			object: `spec: {replicas: 1, autoScaling: {min: 1, max: 2}}`, reject: "replicas and autoScaling cannot both be set"},
		"When max is below min it should be rejected": {object: `spec: {autoScaling: {min: 3, max: 2}}`, reject: "max must be at least min"},
		"When max is 0 it should be rejected":         {object: `spec: {autoScaling: {min: 0, max: 0}}`, reject: "greater than or equal to 1"},
		"When a pool without scale from zero has min 0 it should be rejected": {
			object: `spec: {autoScaling: {min: 0, max: 2}}`, reject: "autoScaling.min may be 0 only"},
		"When min is 0 on Local it should be accepted": {object: `spec: {autoScaling: {min: 0, max: 2}, platform: {type: Local}}`},
		"When min is 0 on AWS it should be accepted": {
			object: `spec: {autoScaling: {min: 0, max: 2}, platform: {type: AWS, aws: {instanceType: m5.large, subnet: {id: subnet-1}}}}`},
		"When in-place settings go with Replace it should be rejected": {
			object: `spec: {management: {inPlace: {maxUnavailable: 1}}}`, reject: "inPlace is allowed only when upgradeType is InPlace"},
		"When in-place settings go with InPlace it should be accepted": {
			object: `spec: {management: {upgradeType: InPlace, inPlace: {maxUnavailable: "10%"}}}`},
		"When a rolling update goes with OnDelete it should be rejected": {
			object: `spec: {management: {replace: {strategy: OnDelete, rollingUpdate: {maxSurge: 1}}}}`, reject: "rollingUpdate is allowed only"},
		"When the strategy is OnDelete alone it should be accepted": {object: `spec: {management: {replace: {strategy: OnDelete}}}`},
		"When the architecture is unknown it should be rejected":    {object: `spec: {arch: riscv64}`, reject: `Unsupported value: "riscv64"`},
		"When arm64 is asked of None it should be accepted":         {object: `spec: {arch: arm64}`},
		"When arm64 is asked of PowerVS it should be rejected":      {object: `spec: {arch: arm64, platform: {type: PowerVS}}`, reject: "arch arm64 is supported"},
		"When s390x is asked of None it should be rejected":         {object: `spec: {arch: s390x}`, reject: "arch s390x is supported"},
		"When s390x is asked of KubeVirt it should be accepted":     {object: `spec: {arch: s390x, platform: {type: KubeVirt, kubevirt: {}}}`},
		"When a taint key is malformed it should be rejected": {
			object: `spec: {taints: [{key: "a b", effect: NoSchedule}]}`, reject: "key must be a qualified name"},
		"When a taint effect is unknown it should be rejected": {
			object: `spec: {taints: [{key: a, effect: Maybe}]}`, reject: `Unsupported value: "Maybe"`},
		"When a taint is well-formed it should be accepted": {object: `spec: {taints: [{key: example.com/a, value: b, effect: NoExecute}]}`},
		"When there are 11 configs it should be rejected": {
			object: `spec: {config: [{name: a},{name: a},{name: a},{name: a},{name: a},{name: a},{name: a},{name: a},{name: a},{name: a},{name: a}]}`, reject: "must have at most 10 items"},
		"When the pause is a word it should be rejected": {object: `spec: {pausedUntil: later}`, reject: "pausedUntil must be"},
		"When an AWS subnet has an ID and filters it should be rejected": {
			object: `spec: {platform: {type: AWS, aws: {instanceType: m5.large, subnet: {id: subnet-1, filters: [{name: a, values: [b]}]}}}}`, reject: "subnet needs either"},
		"When an AWS subnet has filters it should be accepted": {
			object: `spec: {platform: {type: AWS, aws: {instanceType: m5.large, subnet: {filters: [{name: a, values: [b]}]}}}}`},
		"When Windows is asked of amd64 it should be accepted": {object: aws(`, imageType: Windows`)},
		"When Windows is asked of arm64 it should be rejected": {
			object: `spec: {arch: arm64, platform: {type: AWS, aws: {instanceType: m5.large, imageType: Windows, subnet: {id: subnet-1}}}}`, reject: "Windows needs arch amd64"},
		"When a root volume is too small it should be rejected": {object: aws(`, rootVolume: {size: 7, type: gp3}`), reject: "greater than or equal to 8"},
		"When Spot has a dedicated host it should be rejected": {
			object: aws(`, placement: {marketType: Spot, tenancy: dedicated}`), reject: "tenancy must be default when marketType is Spot"},
		"When a spot price goes with on-demand it should be rejected": {
			object: aws(`, placement: {marketType: OnDemand, spot: {maxPrice: "0.1"}}`), reject: "spot is allowed only"},
		"When capacity blocks have no reservation it should be rejected": {
			object: aws(`, placement: {marketType: CapacityBlocks}`), reject: "capacityReservation is required"},
		"When a reservation with an ID is open it should be rejected": {
			object: aws(`, placement: {capacityReservation: {id: cr-0123456789abcdef0, preference: Open}}`), reject: "preference cannot be Open or None"},
		"When a reservation ID is malformed it should be rejected": {
			object: aws(`, placement: {capacityReservation: {id: cr-1}}`), reject: "id must be cr-"},
		"When a resource tag holds a space it should be rejected": {
			object: aws(`, resourceTags: [{key: "a b", value: c}]`), reject: "key may hold letters"},
	})
}

func TestNodePoolAzure(t *testing.T) {
	judge(t, azurePool, map[string]verdict{
		"When only what is required is given it should be accepted": {},
		"When min is 0 it should be accepted":                       {object: `spec: {autoScaling: {min: 0, max: 2}}`},
		"When the subnet is no resource ID it should be rejected": {
			object: `spec: {platform: {azure: {subnetID: subnet}}}`, reject: "subnetID must look like"},
		"When the subscription of the subnet is no UUID it should be rejected": {
			object: `spec: {platform: {azure: {subnetID: /subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/network/subnets/subnet}}}`, reject: "must be a UUID"},
		"When an image ID goes with the marketplace it should be rejected": {
			object: `spec: {platform: {azure: {image: {type: AzureMarketplace}}}}`, reject: "imageID is required when type is ImageID, and forbidden otherwise"},
		"When a marketplace image is incomplete it should be rejected": {
			object: `spec: {platform: {azure: {image: {type: AzureMarketplace, imageID: null, azureMarketplace: {publisher: pub}}}}}`, reject: "publisher, offer, sku and version must all be set"},
		"When the zone is 4 it should be rejected": {object: `spec: {platform: {azure: {availabilityZone: "4"}}}`, reject: "availabilityZone must be 1, 2 or 3"},
		"When logs go to the user's account but it is not named it should be rejected": {
			object: `spec: {platform: {azure: {diagnostics: {storageAccountType: UserManaged}}}}`, reject: "userManaged is required"},
		"When the disk is too large it should be rejected": {object: `spec: {platform: {azure: {osDisk: {sizeGiB: 40000}}}}`, reject: "less than or equal to 32767"},
	})
}

func TestNodePoolUpdate(t *testing.T) {
	judge(t, baseNodePool, map[string]verdict{
		"When replicas change it should be accepted":           {change: `spec: {replicas: 3}`},
		"When the release changes it should be accepted":       {change: `spec: {release: {image: "registry.example.com/release:1.36.4"}}`},
		"When the cluster name changes it should be rejected":  {change: `spec: {clusterName: other}`, reject: "clusterName is immutable"},
		"When the platform changes it should be rejected":      {change: `spec: {platform: {type: Local}}`, reject: "type is immutable"},
		"When the upgrade type changes it should be rejected":  {change: `spec: {management: {upgradeType: InPlace}}`, reject: "upgradeType is immutable"},
		"When the architecture changes it should be rejected":  {change: `spec: {arch: arm64}`, reject: "arch is immutable"},
		"When replicas give way to autoscaling it should pass": {object: `spec: {replicas: 3}`, change: `spec: {replicas: null, autoScaling: {min: 1, max: 3}}`},
	})
}
