package install

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/cli/connect"
)

func TestInventory(t *testing.T) {
	g := NewWithT(t)
	inventory, err := Inventory("operators")
	g.Expect(err).NotTo(HaveOccurred())
	known := map[string]bool{}
	for _, obj := range inventory {
		key, err := identify(connect.Scheme(), obj)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(known).NotTo(HaveKey(key))
		known[key] = true
	}
	for name, change := range map[string]func(*Options){
		"When nothing is asked for":                 func(*Options) {},
		"When standard types are asked for":         func(o *Options) { o.PrivateCAPI = CAPIStandard },
		"When there are clusters of standard types": func(o *Options) { o.capi = &capiChoice{Private: true, Legacy: true} },
		"When a developer runs the operator":        func(o *Options) { o.Development, o.OpenShift, o.TechPreview = true, true, true },
		"When there is no native sidecar":           func(o *Options) { o.NoNativeSidecars, o.PackageOperator = true, true },
		"When Google keeps names": func(o *Options) {
			o.ExternalDNS.Provider, o.ExternalDNS.DomainFilter, o.Monitoring.Objects, o.Monitoring.SLOAlerts = dnsGoogle, "example.com", true, true
		},
	} {
		t.Run(name+" all of it should be in the inventory", func(t *testing.T) {
			g := NewWithT(t)
			o := NewOptions()
			o.Namespace, o.Image = "operators", "x"
			change(&o)
			objs, err := Objects(o)
			g.Expect(err).NotTo(HaveOccurred())
			for _, obj := range objs {
				key, err := identify(connect.Scheme(), obj)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(known).To(HaveKey(key))
			}
		})
	}
}

func TestOwns(t *testing.T) {
	metadata := func(namespace, name string, change func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if change != nil {
			change(m)
		}
		return m
	}
	for name, tc := range map[string]struct {
		live *metav1.PartialObjectMetadata
		ours bool
	}{
		"When it is in our namespace it should be ours":       {metadata("operators", "external-dns", nil), true},
		"When it is our namespace it should be ours":          {metadata("", "operators", nil), true},
		"When it has our name it should be ours":              {metadata("", "hypershift-client", nil), true},
		"When it is in a namespace of ours it should be ours": {metadata("hypershift-sharedingress", "router", nil), true},
		"When others have its name it should be theirs":       {metadata("", "external-dns", nil), false},
		"When it came from a chart it should be ours": {metadata("", "external-dns", func(m *metav1.PartialObjectMetadata) {
			m.Labels = map[string]string{partOfLabel: partOf}
		}), true},
		"When it has such a label of another product it should be theirs": {metadata("", "external-dns", func(m *metav1.PartialObjectMetadata) {
			m.Labels = map[string]string{partOfLabel: "external-dns"}
		}), false},
		"When we applied it, it should be ours": {metadata("", "external-dns", func(m *metav1.PartialObjectMetadata) {
			m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: connect.FieldOwner}}
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Owns(tc.live, "operators")).To(Equal(tc.ours))
		})
	}
}

func TestOwnsCRD(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
	}
	const spec, rendered = `{"f:spec":{"f:versions":{}}}`, `{"f:metadata":{"f:annotations":{"f:` + installedVersion + `":{}}},"f:spec":{"f:versions":{}}}`
	const elsewhere = `{"f:metadata":{"f:annotations":{"f:` + installedVersion + `":{}}},"f:spec":{"f:conversion":{}}}`
	for name, tc := range map[string]struct {
		group   string
		managed []metav1.ManagedFieldsEntry
		ours    bool
	}{
		"When it is of our group it should be ours whoever wrote it":            {hypershiftGroup, nil, true},
		"When it is of a private group it should be ours whoever wrote it":      {"infrastructure.cluster.hypershift.openshift.io", []metav1.ManagedFieldsEntry{entry("helm", spec)}, true},
		"When the group only ends alike it should be theirs":                    {"nothypershift.openshift.io", []metav1.ManagedFieldsEntry{entry("helm", spec)}, false},
		"When we applied it, it should be ours":                                 {"package-operator.run", []metav1.ManagedFieldsEntry{entry("kube-apiserver", `{"f:status":{}}`), entry(connect.FieldOwner, spec)}, true},
		"When others wrote it, it should be theirs":                             {"package-operator.run", []metav1.ManagedFieldsEntry{entry("package-operator", spec)}, false},
		"When a chart of ours brought it, it should be ours":                    {"openstack.k-orc.cloud", []metav1.ManagedFieldsEntry{entry("helm", rendered)}, true},
		"When others replaced what we applied it should be theirs":              {"cluster.x-k8s.io", []metav1.ManagedFieldsEntry{entry(connect.FieldOwner, elsewhere), entry("clusterctl", spec)}, false},
		"When others replaced what came from a chart it should be theirs":       {"cluster.x-k8s.io", []metav1.ManagedFieldsEntry{entry("helm", elsewhere), entry("clusterctl", spec)}, false},
		"When nobody knows who wrote it, it should be theirs":                   {"cluster.x-k8s.io", nil, false},
		"When what a manager wrote can't be read it should be taken for theirs": {"cluster.x-k8s.io", []metav1.ManagedFieldsEntry{{Manager: connect.FieldOwner}, entry(connect.FieldOwner, "{")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: tc.managed}}
			NewWithT(t).Expect(OwnsCRD(crd, tc.group)).To(Equal(tc.ours))
		})
	}
}
