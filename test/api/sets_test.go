package api_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	testenv.Start(t).Install(t, crds...)
}

const baseEtcdBackup = `
apiVersion: hypershift.openshift.io/v1beta1
kind: HCPEtcdBackup
metadata: {name: demo}
spec: {storage: {storageType: S3, s3: {bucket: demo, region: us-east-1, keyPrefix: a/b, credentials: {name: creds}}}}
`

func TestPreviews(t *testing.T) {
	g := NewWithT(t)
	install(t, func() ([]*apiextensionsv1.CustomResourceDefinition, error) { return config.CRDs(config.TechPreviewSet) })
	// The tests of this package share an API server, and the others are about the default set.
	awaitOpenStack(t, Succeed())
	defer awaitOpenStack(t, MatchError(ContainSubstring(`Unsupported value: "OpenStack"`)))
	defer install(t, func() ([]*apiextensionsv1.CustomResourceDefinition, error) { return config.CRDs(config.DefaultSet) })

	g.Expect(t.Run("examples", func(t *testing.T) {
		tryExamples(t, examples)
		tryExamples(t, examples+"/techpreview")
	})).To(BeTrue())
	g.Expect(t.Run("rules", everyRule)).To(BeTrue())
	g.Expect(t.Run("etcd backup", func(t *testing.T) {
		judge(t, baseEtcdBackup, map[string]verdict{
			"When a backup says where it goes it should be accepted": {},
			"When a backup lacks its bucket it should be rejected":   {object: `spec: {storage: {s3: null}}`, reject: "s3 is required when storageType is S3"},
			"When a bucket has capitals it should be rejected":       {object: `spec: {storage: {s3: {bucket: Demo}}}`, reject: "bucket may hold"},
			"When a backup changes it should be rejected":            {change: `spec: {storage: {s3: {keyPrefix: c}}}`, reject: "spec is immutable"},
		})
	})).To(BeTrue())
	g.Expect(t.Run("hosted cluster", func(t *testing.T) {
		judge(t, baseHostedCluster, map[string]verdict{
			"When OpenStack lacks its cloud it should be rejected": {
				object: `spec: {platform: {type: OpenStack, openstack: {identityRef: {name: creds}}}}`, reject: "Required value", field: "spec.platform.openstack.identityRef.cloudName"},
			"When a network has an ID and a filter it should be rejected": {
				object: `spec: {platform: {type: OpenStack, openstack: {identityRef: {name: creds, cloudName: c}, network: {id: 6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b11, filter: {name: net}}}}}`,
				reject: "must have at most 1 item"},
			"When shards share a resource it should be rejected": {object: shards("events", "events"), reject: "a resource can be in one shard only"},
			"When shards share nothing it should be accepted":    {object: shards("events", "leases")},
			"When a shard is renamed it should be rejected":      {object: shards("events", "leases"), change: shards("leases", "events"), reject: "resources is immutable"},
			"When shards come afterwards it should be rejected":  {change: shards("events", "leases"), reject: "cannot be added or removed"},
		})
	})).To(BeTrue())
	g.Expect(t.Run("node pool", func(t *testing.T) {
		judge(t, baseNodePool, map[string]verdict{
			"When the operating system goes back it should be rejected": {object: `spec: {osImageStream: {name: rhel-10}}`,
				change: `spec: {osImageStream: {name: rhel-9}}`, reject: "cannot go back"},
			"When the operating system is left open again it should be rejected": {object: `spec: {osImageStream: {name: rhel-9}}`,
				change: `spec: {osImageStream: null}`, reject: "osImageStream cannot be removed"},
		})
	})).To(BeTrue())
}

// shards is a HostedCluster patch with two shards of etcd.
func shards(first, second string) string {
	return `spec: {etcd: {managementType: Managed, managed: {storage: {type: PersistentVolume}, shards: [
		{name: a, replicas: 1, resources: [{apiGroup: "", resource: ` + first + `}]},
		{name: b, replicas: 3, resources: [{apiGroup: "", resource: ` + second + `}]}]}}}`
}

// awaitOpenStack waits until the API server has taken over a changed definition, by what it says about a preview.
func awaitOpenStack(t *testing.T, want types.GomegaMatcher) {
	t.Helper()
	env := testenv.Start(t)
	c := env.Client(t, runtime.NewScheme())
	ns := env.Namespace(t)
	NewWithT(t).Eventually(func() error {
		obj := merge(t, parse(t, baseHostedCluster), `spec: {platform: {type: OpenStack, openstack: {identityRef: {name: creds, cloudName: c}}}}`)
		obj.SetNamespace(ns)
		return c.Create(t.Context(), obj, client.DryRunAll)
	}).WithTimeout(time.Minute).Should(want, "the definition should be taken over")
}

const baseNodeClass = `
apiVersion: karpenter.hypershift.openshift.io/v1
kind: OpenshiftEC2NodeClass
metadata: {name: demo}
spec: {subnetSelectorTerms: [{id: subnet-1}]}
`

func TestHostedKinds(t *testing.T) {
	install(t, config.HostedCRDs)
	crds, err := config.HostedCRDs()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, crd := range crds {
		kind := crd.Spec.Names.Kind
		t.Run(kind, func(t *testing.T) { tryRules(t, kind, crd, readRules(t, kind), nil) })
	}
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
