package api_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/testenv"
)

// install serves more than testenv does: the previews and what hosted clusters serve. An API server refuses definitions
// whose rules do not compile or may cost too much, so installing them is a test, too.
func install(t *testing.T, list func() ([]*apiextensionsv1.CustomResourceDefinition, error)) {
	t.Helper()
	g := NewWithT(t)
	crds, err := list()
	g.Expect(err).NotTo(HaveOccurred())
	_, err = envtest.InstallCRDs(testenv.Start(t).Config, envtest.CRDInstallOptions{CRDs: crds, MaxTime: time.Minute})
	g.Expect(err).NotTo(HaveOccurred())
}

const baseEtcdBackup = `
apiVersion: hypershift.openshift.io/v1beta1
kind: HCPEtcdBackup
metadata: {name: demo}
spec: {storage: {storageType: S3, s3: {bucket: demo, region: us-east-1, keyPrefix: a/b, credentials: {name: creds}}}}
`

func TestPreviews(t *testing.T) {
	install(t, func() ([]*apiextensionsv1.CustomResourceDefinition, error) { return config.CRDs(config.TechPreviewSet) })
	judge(t, baseEtcdBackup, map[string]verdict{
		"When a backup says where it goes it should be accepted": {},
		"When a backup lacks its bucket it should be rejected":   {object: `spec: {storage: {s3: null}}`, reject: "s3 is required when storageType is S3"},
		"When a bucket has capitals it should be rejected":       {object: `spec: {storage: {s3: {bucket: Demo}}}`, reject: "bucket may hold"},
		"When a backup changes it should be rejected":            {change: `spec: {storage: {s3: {keyPrefix: c}}}`, reject: "spec is immutable"},
	})
}

const baseNodeClass = `
apiVersion: karpenter.hypershift.openshift.io/v1
kind: OpenshiftEC2NodeClass
metadata: {name: demo}
spec: {subnetSelectorTerms: [{id: subnet-1}]}
`

func TestHostedKinds(t *testing.T) {
	install(t, config.HostedCRDs)
	judge(t, baseNodeClass, map[string]verdict{
		"When a node class selects a subnet it should be accepted": {},
		"When a node class says nothing it should be rejected":     {object: `spec: {subnetSelectorTerms: null}`, reject: "at least 1 properties"},
		"When a selector has an ID and tags it should be rejected": {
			object: `spec: {subnetSelectorTerms: [{id: subnet-1, tags: {a: b}}]}`, reject: "id and tags cannot be"},
		"When a reserved tag is set it should be rejected": {object: `spec: {tags: {karpenter.sh/nodepool: x}}`, reject: "is reserved"},
		"When a soft threshold is below the hard one it should be rejected": {
			object: `spec: {kubelet: {evictionHard: {memory.available: 10%}, evictionSoft: {memory.available: 5%}, evictionSoftGracePeriod: {memory.available: 1m}}}`,
			reject: "a soft threshold cannot be below"},
		"When the kubelet has a setting that is not known it should be kept and accepted": {object: `spec: {kubelet: {seccompDefault: true}}`},
	})
}
