package api_test

import "testing"

// baseHostedCluster is the least that a user writes for the platform None.
const baseHostedCluster = `
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedCluster
metadata: {name: demo}
spec:
  platform: {type: None}
  release: {image: "registry.example.com/release:1.36.3"}
  pullSecret: {name: pull-secret}
  services:
  - {service: APIServer, servicePublishingStrategy: {type: LoadBalancer}}
  - {service: OAuthServer, servicePublishingStrategy: {type: Route}}
  - {service: Konnectivity, servicePublishingStrategy: {type: Route}}
  - {service: Ignition, servicePublishingStrategy: {type: Route}}
`

// services lists the four services with a strategy of the test's for the API server.
func services(apiServer string) string {
	return `spec: {services: [
  {service: APIServer, servicePublishingStrategy: ` + apiServer + `},
  {service: OAuthServer, servicePublishingStrategy: {type: Route}},
  {service: Konnectivity, servicePublishingStrategy: {type: Route}},
  {service: Ignition, servicePublishingStrategy: {type: Route}}]}`
}

func TestHostedClusterCreate(t *testing.T) {
	judge(t, baseHostedCluster, map[string]verdict{
		"When only what is required is given it should be accepted": {},
		"When the platform is Local it should be accepted":          {object: `spec: {platform: {type: Local}}`},
		"When the platform is unknown it should be rejected":        {object: `spec: {platform: {type: Mars}}`, reject: `Unsupported value: "Mars"`},
		"When a preview platform is asked for it should be rejected": {
			object: `spec: {platform: {type: OpenStack}}`, reject: `Unsupported value: "OpenStack"`},
		"When the platform is missing it should be rejected":    {object: `spec: {platform: null}`, reject: "Required value", field: "spec.platform"},
		"When the release is missing it should be rejected":     {object: `spec: {release: null}`, reject: "Required value", field: "spec.release"},
		"When the pull secret is missing it should be rejected": {object: `spec: {pullSecret: null}`, reject: "Required value", field: "spec.pullSecret"},
		"When the services are missing it should be rejected":   {object: `spec: {services: null}`, reject: "Required value", field: "spec.services"},
		"When a release image holds spaces it should be rejected": {
			object: `spec: {release: {image: "a b"}}`, reject: "hold no spaces", field: "spec.release.image"},
		"When a release image is empty it should be rejected": {
			object: `spec: {release: {image: ""}}`, reject: "at least 1 chars long"},
		"When a release image is too long it should be rejected": {
			object: `spec: {release: {image: "` + long(254) + `"}}`, reject: "may not be more than 253"},
		"When there are three services it should be rejected": {
			object: `spec: {services: [{service: APIServer, servicePublishingStrategy: {type: Route}},
				{service: Konnectivity, servicePublishingStrategy: {type: Route}}, {service: Ignition, servicePublishingStrategy: {type: Route}}]}`,
			reject: "services must say how"},
		"When there are three services on IBMCloud it should be accepted": {
			object: `spec: {platform: {type: IBMCloud}, services: [{service: APIServer, servicePublishingStrategy: {type: Route}},
				{service: Konnectivity, servicePublishingStrategy: {type: Route}}, {service: Ignition, servicePublishingStrategy: {type: Route}}]}`},
		"When a service is unknown it should be rejected": {
			object: `spec: {services: [{service: Web, servicePublishingStrategy: {type: Route}}]}`, reject: `Unsupported value: "Web"`},
		"When a NodePort has an address and a port it should be accepted": {object: services(`{type: NodePort, nodePort: {address: 192.0.2.1, port: 30443}}`)},
		"When a NodePort has a host name it should be accepted":           {object: services(`{type: NodePort, nodePort: {address: node.example.com}}`)},
		"When a NodePort has an IPv6 address it should be accepted":       {object: services(`{type: NodePort, nodePort: {address: "2001:db8::1"}}`)},
		"When a NodePort has no address it should be rejected": {
			object: services(`{type: NodePort}`), reject: "nodePort is required when type is NodePort"},
		"When the address of a NodePort is malformed it should be rejected": {
			object: services(`{type: NodePort, nodePort: {address: "not a host"}}`), reject: "address must be a fully qualified host name"},
		"When a Route has a nodePort it should be rejected": {
			object: services(`{type: Route, nodePort: {address: 192.0.2.1}}`), reject: "nodePort is required when type is NodePort, and forbidden otherwise"},
		"When a Route has a host name it should be accepted": {object: services(`{type: Route, route: {hostname: api.example.com}}`)},
		"When a Route has a malformed host name it should be rejected": {
			object: services(`{type: Route, route: {hostname: api}}`), reject: "hostname must be a fully qualified name"},
		"When a LoadBalancer has a route it should be rejected": {
			object: services(`{type: LoadBalancer, route: {hostname: api.example.com}}`), reject: "route is allowed only when type is Route"},
		"When a Route has a loadBalancer it should be rejected": {
			object: services(`{type: Route, loadBalancer: {hostname: api.example.com}}`), reject: "loadBalancer is allowed only when type is LoadBalancer"},
		"When None has a loadBalancer it should be rejected": {
			object: services(`{type: None, loadBalancer: {hostname: api.example.com}}`), reject: "forbidden when type is None"},
		"When S3 has a route it should be rejected": {
			object: services(`{type: S3, route: {hostname: api.example.com}}`), reject: "forbidden when type is S3"},
	})
}

func TestHostedClusterServingCertificates(t *testing.T) {
	base := manifest(t, baseHostedCluster, services(`{type: LoadBalancer, loadBalancer: {hostname: api.example.com}}`))
	judge(t, base, map[string]verdict{
		"When a user's certificate is for the host name of the API server it should be rejected": {
			object: `spec: {configuration: {apiServer: {servingCerts: {namedCertificates: [{names: [other.example.com, api.example.com], servingCertificate: {name: cert}}]}}}}`,
			reject: "cannot be among configuration.apiServer.servingCerts.namedCertificates names"},
		"When a user's certificate is for another name it should be accepted": {
			object: `spec: {configuration: {apiServer: {servingCerts: {namedCertificates: [{names: [other.example.com], servingCertificate: {name: cert}}]}}}}`},
	})
}

func TestHostedClusterFields(t *testing.T) {
	judge(t, baseHostedCluster, map[string]verdict{
		"When two networks are the same it should be rejected": {
			object: `spec: {networking: {clusterNetwork: [{cidr: 10.0.0.0/16}], serviceNetwork: [{cidr: 10.0.0.0/16}]}}`, reject: "a CIDR may appear only once"},
		"When the machine network is the pod network it should be rejected": {
			object: `spec: {networking: {machineNetwork: [{cidr: 10.132.0.0/14}]}}`, reject: "a CIDR may appear only once"},
		"When networks are dual stack it should be accepted": {
			object: `spec: {networking: {clusterNetwork: [{cidr: 10.0.0.0/16}, {cidr: "fd01::/48"}], serviceNetwork: [{cidr: 172.30.0.0/16}, {cidr: "fd02::/112"}]}}`},
		"When a network is malformed it should be rejected": {
			object: `spec: {networking: {clusterNetwork: [{cidr: 10.0.0.0}]}}`, reject: "a CIDR must look like"},
		"When there are three networks it should be rejected": {
			object: `spec: {networking: {clusterNetwork: [{cidr: 10.0.0.0/16}, {cidr: 10.1.0.0/16}, {cidr: 10.2.0.0/16}]}}`, reject: "must have at most 2 items"},
		"When there is no pod network it should be rejected": {
			object: `spec: {networking: {clusterNetwork: []}}`, reject: "should have at least 1 items"},
		"When the network type is unknown it should be rejected": {
			object: `spec: {networking: {networkType: Flannel}}`, reject: `Unsupported value: "Flannel"`},
		"When node CIDRs are allocated with another network it should be accepted": {
			object: `spec: {networking: {networkType: Other, allocateNodeCIDRs: Enabled}}`},
		"When node CIDRs are allocated with OVN it should be rejected": {
			object: `spec: {networking: {allocateNodeCIDRs: Enabled}}`, reject: "allocateNodeCIDRs may be Enabled only"},
		"When an allowed network is malformed it should be rejected": {
			object: `spec: {networking: {apiServer: {allowedCIDRBlocks: [everywhere]}}}`, reject: "a CIDR must look like"},
		"When allowed networks repeat it should be rejected": {
			object: `spec: {networking: {apiServer: {allowedCIDRBlocks: [10.0.0.0/8, 10.0.0.0/8]}}}`, reject: "Duplicate value"},
		"When etcd is managed without saying how it should be rejected": {
			object: `spec: {etcd: {managementType: Managed}}`, reject: "managed is required when managementType is Managed"},
		"When etcd is unmanaged with everything it should be accepted": {
			object: `spec: {etcd: {managementType: Unmanaged, unmanaged: {endpoint: "https://etcd:2379", tls: {clientSecret: {name: etcd}}}}}`},
		"When etcd is unmanaged without saying where it should be rejected": {
			object: `spec: {etcd: {managementType: Unmanaged}}`, reject: "unmanaged is required when managementType is Unmanaged"},
		"When etcd is both managed and unmanaged it should be rejected": {
			object: `spec: {etcd: {managementType: Managed, managed: {storage: {type: PersistentVolume}}, unmanaged: {endpoint: "https://etcd:2379", tls: {clientSecret: {name: etcd}}}}}`,
			reject: "unmanaged is required when managementType is Unmanaged, and forbidden otherwise"},
		"When the user's etcd is reached without TLS it should be rejected": {
			object: `spec: {etcd: {managementType: Unmanaged, unmanaged: {endpoint: "http://etcd:2379", tls: {clientSecret: {name: etcd}}}}}`, reject: "should match '^https://'"},
		"When a snapshot comes over HTTP it should be rejected": {
			object: `spec: {etcd: {managementType: Managed, managed: {storage: {type: PersistentVolume, restoreSnapshotURL: ["http://x/y"]}}}}`, reject: "restoreSnapshotURL must start with https://"},
		"When the size of etcd's volumes is no quantity it should be rejected": {
			object: `spec: {etcd: {managementType: Managed, managed: {storage: {type: PersistentVolume, persistentVolume: {size: big}}}}}`, reject: "should match"},
		"When the pause is a word it should be rejected":         {object: `spec: {pausedUntil: later}`, reject: "pausedUntil must be an RFC 3339 time"},
		"When the pause is a time it should be accepted":         {object: `spec: {pausedUntil: "2027-01-31T12:00:00Z"}`},
		"When the pause is a boolean word it should be accepted": {object: `spec: {pausedUntil: "true"}`},
		"When the cluster ID is a UUID it should be accepted":    {object: `spec: {clusterID: 6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b11}`},
		"When the cluster ID is no UUID it should be rejected": {
			object: `spec: {clusterID: "6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0bxx"}`, reject: "clusterID must be a UUID"},
		"When the infra ID has capitals it should be rejected": {object: `spec: {infraID: Demo}`, reject: "infraID must consist of lower-case letters"},
		"When the issuer is no URL it should be rejected":      {object: `spec: {issuerURL: issuer}`, reject: "issuerURL must be an absolute URL"},
		"When the update service is no URL it should be rejected": {
			object: `spec: {updateService: here}`, reject: "updateService must be an absolute URL"},
		"When the base domain is malformed it should be rejected": {
			object: `spec: {dns: {baseDomain: "a..b"}}`, reject: "must be a domain name"},
		"When the base domain and its prefix are empty it should be accepted": {object: `spec: {dns: {baseDomain: "", baseDomainPrefix: ""}}`},
		"When dns lacks the base domain it should be rejected":                {object: `spec: {dns: {publicZoneID: Z1}}`, reject: "Required value", field: "spec.dns.baseDomain"},
		"When the name of the API server is malformed it should be rejected":  {object: `spec: {kubeAPIServerDNSName: "a_b"}`, reject: "kubeAPIServerDNSName must be a DNS name"},
		"When encryption is with local keys it should be accepted": {
			object: `spec: {secretEncryption: {type: aescbc, aescbc: {activeKey: {name: key}}}}`},
		"When the way of encryption is unknown it should be rejected": {
			object: `spec: {secretEncryption: {type: rot13}}`, reject: `Unsupported value: "rot13"`},
		"When an AWS key is no ARN it should be rejected": {
			object: `spec: {secretEncryption: {type: kms, kms: {provider: AWS, aws: {region: r, activeKey: {arn: key}, auth: {awsKms: role}}}}}`, reject: "arn must start with arn:"},
		"When there are 21 node labels to select it should be rejected": {
			object: `spec: {nodeSelector: {` + labels(21) + `}}`, reject: "nodeSelector takes at most 20 labels"},
		"When there are 21 labels it should be rejected": {object: `spec: {labels: {` + labels(21) + `}}`, reject: "must have at most 20 items"},
		"When a capability is both enabled and disabled it should be rejected": {
			object: `spec: {capabilities: {enabled: [Insights], disabled: [Insights]}}`, reject: "both enabled and disabled"},
		"When Ingress alone is disabled it should be rejected": {
			object: `spec: {capabilities: {disabled: [Ingress]}}`, reject: "only together with Console"},
		"When Ingress is disabled with Console it should be accepted": {object: `spec: {capabilities: {disabled: [Ingress, Console]}}`},
		"When scale-down is configured with ScaleUpOnly it should be rejected": {
			object: `spec: {autoscaling: {scaling: ScaleUpOnly, scaleDown: {delayAfterAddSeconds: 10}}}`, reject: "scaleDown is allowed only"},
		"When a label for balancing is malformed it should be rejected": {
			object: `spec: {autoscaling: {balancingIgnoredLabels: ["a b"]}}`, reject: "must be a label key"},
		"When multi-network is disabled with OVN it should be rejected": {
			object: `spec: {operatorConfiguration: {clusterNetworkOperator: {disableMultiNetwork: true}}}`, reject: "only when networking.networkType is Other"},
		"When OVN is configured for another network it should be rejected": {
			object: `spec: {networking: {networkType: Calico}, operatorConfiguration: {clusterNetworkOperator: {ovnKubernetesConfig: {mtu: 1400}}}}`,
			reject: "only when networking.networkType is OVNKubernetes"},
		"When OVN's networks are the same it should be rejected": {
			object: `spec: {operatorConfiguration: {clusterNetworkOperator: {ovnKubernetesConfig: {ipv4: {internalJoinSubnet: 100.64.0.0/16, internalTransitSwitchSubnet: 100.64.0.0/16}}}}}`,
			reject: "must differ"},
		"When Karpenter has no cloud it should be rejected": {
			object: `spec: {autoNode: {provisionerConfig: {name: Karpenter, karpenter: {platform: AWS}}}}`, reject: "aws is required when platform is AWS"},
		"When monitoring says nothing it should be rejected": {object: `spec: {monitoring: {}}`, reject: "at least 1 properties"},
		"When both kinds of registry lists are given it should be rejected": {
			object: `spec: {configuration: {image: {registrySources: {allowedRegistries: [a.example.com], blockedRegistries: [b.example.com]}}}}`, reject: "cannot both be set"},
		"When tokens time out too soon it should be rejected": {
			object: `spec: {configuration: {oauth: {tokenConfig: {accessTokenInactivityTimeout: 299s}}}}`, reject: "at least 300 seconds"},
	})
}

func TestHostedClusterUpdate(t *testing.T) {
	judge(t, baseHostedCluster, map[string]verdict{
		"When the release changes it should be accepted":     {change: `spec: {release: {image: "registry.example.com/release:1.36.4"}}`},
		"When the pull secret changes it should be accepted": {change: `spec: {pullSecret: {name: other}}`},
		"When the cluster is paused it should be accepted":   {change: `spec: {pausedUntil: "true"}`},
		"When the platform changes it should be rejected":    {change: `spec: {platform: {type: Local}}`, reject: "type is immutable"},
		"When the services change it should be rejected": {
			change: services(`{type: Route}`), reject: "services is immutable"},
		"When the availability changes it should be rejected": {
			change: `spec: {controllerAvailabilityPolicy: SingleReplica}`, reject: "controllerAvailabilityPolicy is immutable"},
		"When the networks change it should be rejected": {
			change: `spec: {networking: {serviceNetwork: [{cidr: 172.30.0.0/16}]}}`, reject: "serviceNetwork is immutable"},
		"When the issuer changes it should be rejected":                {change: `spec: {issuerURL: "https://issuer.example.com"}`, reject: "issuerURL is immutable"},
		"When the placement of catalogs changes it should be rejected": {change: `spec: {olmCatalogPlacement: guest}`, reject: "olmCatalogPlacement is immutable"},
		"When etcd moves it should be rejected": {
			change: `spec: {etcd: {managementType: Unmanaged, managed: null, unmanaged: {endpoint: "https://etcd:2379", tls: {clientSecret: {name: etcd}}}}}`, reject: "managementType is immutable"},
		"When etcd's volumes change their size it should be rejected": {
			change: `spec: {etcd: {managed: {storage: {persistentVolume: {size: 16Gi}}}}}`, reject: "size is immutable"},
		"When a snapshot is named afterwards it should be rejected": {
			change: `spec: {etcd: {managed: {storage: {restoreSnapshotURL: ["https://x/y"]}}}}`, reject: "cannot be added or removed"},
		"When the IDs are set afterwards it should be accepted": {
			change: `spec: {infraID: demo-abcde, clusterID: 6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b11}`},
		"When the infra ID changes it should be rejected": {object: `spec: {infraID: a}`, change: `spec: {infraID: b}`, reject: "infraID is immutable"},
		"When the infra ID goes it should be rejected":    {object: `spec: {infraID: a}`, change: `spec: {infraID: null}`, reject: "spec.infraID cannot be removed"},
		"When the cluster ID changes it should be rejected": {object: `spec: {clusterID: 6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b11}`,
			change: `spec: {clusterID: 6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b12}`, reject: "clusterID is immutable"},
		"When the cluster ID goes it should be rejected": {object: `spec: {clusterID: 6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b11}`,
			change: `spec: {clusterID: null}`, reject: "spec.clusterID cannot be removed"},
		"When the base domain is set afterwards it should be accepted": {object: `spec: {dns: {baseDomain: ""}}`, change: `spec: {dns: {baseDomain: example.com}}`},
		"When the base domain changes it should be rejected": {object: `spec: {dns: {baseDomain: example.com}}`,
			change: `spec: {dns: {baseDomain: example.org}}`, reject: "baseDomain is immutable"},
		"When encryption starts afterwards it should be accepted": {change: `spec: {secretEncryption: {type: aescbc, aescbc: {activeKey: {name: key}}}}`},
		"When encryption stops it should be rejected": {object: `spec: {secretEncryption: {type: aescbc, aescbc: {activeKey: {name: key}}}}`,
			change: `spec: {secretEncryption: null}`, reject: "secretEncryption cannot be removed"},
		"When the key of encryption changes it should be accepted": {object: `spec: {secretEncryption: {type: aescbc, aescbc: {activeKey: {name: key}}}}`,
			change: `spec: {secretEncryption: {aescbc: {activeKey: {name: key2}, backupKey: {name: key}}}}`},
		"When capabilities change it should be rejected": {change: `spec: {capabilities: {disabled: [Insights]}}`, reject: "capabilities is immutable"},
		"When FIPS changes it should be rejected":        {object: `spec: {fips: false}`, change: `spec: {fips: true}`, reject: "fips is immutable"},
		"When the name of the API server changes it should be accepted": {object: `spec: {kubeAPIServerDNSName: a.example.com}`,
			change: `spec: {kubeAPIServerDNSName: ""}`},
		"When the advertised address changes it should be rejected": {object: `spec: {networking: {apiServer: {advertiseAddress: 172.20.0.1}}}`,
			change: `spec: {networking: {apiServer: {advertiseAddress: 172.20.0.2}}}`, reject: "advertiseAddress is immutable"},
		"When previews are switched off again it should be rejected": {object: `spec: {configuration: {featureGate: {featureSet: TechPreviewNoUpgrade}}}`,
			change: `spec: {configuration: {featureGate: {featureSet: ""}}}`, reject: "featureSet cannot change from TechPreviewNoUpgrade"},
		"When services change on IBMCloud it should be accepted": {object: `spec: {platform: {type: IBMCloud}}`, change: services(`{type: Route}`)},
	})
}
