package api_test

import "testing"

const baseSizing = `
apiVersion: scheduling.hypershift.openshift.io/v1alpha1
kind: ClusterSizingConfiguration
metadata: {name: cluster}
spec:
  sizes:
  - {name: small, criteria: {from: 0, to: 10}}
  - {name: large, criteria: {from: 11}}
`

func TestClusterSizingConfiguration(t *testing.T) {
	judge(t, baseSizing, map[string]verdict{
		"When the sizes cover every number it should be accepted": {},
		"When it is not named cluster it should be rejected":      {object: `metadata: {name: other}`, reject: "is named cluster"},
		"When no size starts at 0 it should be rejected":          {object: `spec: {sizes: [{name: a, criteria: {from: 1}}]}`, reject: "criteria.from 0"},
		"When no size is open it should be rejected":              {object: `spec: {sizes: [{name: a, criteria: {from: 0, to: 1}}]}`, reject: "no criteria.to"},
		"When a size ends before it starts it should be rejected": {
			object: `spec: {sizes: [{name: a, criteria: {from: 0}}, {name: b, criteria: {from: 3, to: 2}}]}`, reject: "from cannot be greater than to"},
		"When a delay is no duration it should be rejected": {object: `spec: {transitionDelay: {increase: soon}}`, reject: "should match"},
	})
}

const baseRevocation = `
apiVersion: certificates.hypershift.openshift.io/v1alpha1
kind: CertificateRevocationRequest
metadata: {name: demo}
spec: {signerClass: customer-break-glass}
`

func TestCertificateRevocationRequest(t *testing.T) {
	judge(t, baseRevocation, map[string]verdict{
		"When the signer is known it should be accepted":   {},
		"When the signer is unknown it should be rejected": {object: `spec: {signerClass: other}`, reject: `Unsupported value: "other"`},
		"When the signer changes it should be rejected":    {change: `spec: {signerClass: sre-break-glass}`, reject: "signerClass is immutable"},
	})
}

const baseHostedControlPlane = `
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedControlPlane
metadata: {name: demo}
spec:
  releaseImage: registry.example.com/release:1.36.3
  pullSecret: {name: pull-secret}
  sshKey: {}
  issuerURL: https://kubernetes.default.svc
  infraID: demo-abcde
  dns: {baseDomain: ""}
  platform: {type: None}
  etcd: {managementType: Managed, managed: {storage: {type: PersistentVolume, persistentVolume: {size: 8Gi}}}}
  services:
  - {service: APIServer, servicePublishingStrategy: {type: LoadBalancer}}
  - {service: OAuthServer, servicePublishingStrategy: {type: Route}}
  - {service: Konnectivity, servicePublishingStrategy: {type: Route}}
  - {service: Ignition, servicePublishingStrategy: {type: Route}}
`

func TestHostedControlPlane(t *testing.T) {
	judge(t, baseHostedControlPlane, map[string]verdict{
		"When only what is required is given it should be accepted": {},
		"When the infra ID is missing it should be rejected":        {object: `spec: {infraID: null}`, reject: "Required value", field: "spec.infraID"},
		"When there are three services it should be rejected":       {object: `spec: {services: []}`, reject: "services must say how"},
		"When services change it should be accepted":                {change: services(`{type: Route}`)},
		"When encryption stops it should be rejected": {object: `spec: {secretEncryption: {type: aescbc, aescbc: {activeKey: {name: key}}}}`,
			change: `spec: {secretEncryption: null}`, reject: "secretEncryption cannot be removed"},
	})
}
