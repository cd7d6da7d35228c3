package hypershift

import (
	"bytes"
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/clitest"
)

var demo = client.ObjectKey{Namespace: "clusters", Name: "demo"}

// cluster is an available hosted cluster.
func cluster(change ...func(*hyperv1.HostedCluster)) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: demo.Name, UID: "uid"}}
	hc.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.HostedClusterAvailable), Status: metav1.ConditionTrue}}
	for _, c := range change {
		c(hc)
	}
	return hc
}

func seen(change ...func(*observed)) observed {
	in := observed{Key: demo, Namespace: "clusters-demo", Cluster: cluster(), Owner: "clusters/demo", Present: true}
	for _, c := range change {
		c(&in)
	}
	return in
}

func TestPlan(t *testing.T) {
	direct := settings{Image: "registry.example.com/operator:1"}
	packaged := settings{Image: "registry.example.com/operator:1", PackageImage: "registry.example.com/package:1"}
	part := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "package-operator-remote-phase-manager"}}
	pkg := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: connectorPackage}}
	for name, c := range map[string]struct {
		in                observed
		settings          settings
		apply, deletes    int
		installsByPackage bool
	}{
		"When a cluster is available it should deploy a connector": {in: seen(), settings: direct, apply: 4},
		"When it isn't available it should leave it as it is": {
			in: seen(func(o *observed) { o.Cluster.Status.Conditions = nil; o.Parts = []client.Object{part} }), settings: direct,
		},
		"When a cluster is deleted it should leave its connector to the end": {
			in: seen(func(o *observed) { o.Cluster.DeletionTimestamp = ptr.To(metav1.Now()); o.Parts = []client.Object{part} }), settings: direct,
		},
		"When a cluster is gone it should remove what is left": {
			in: seen(func(o *observed) { o.Cluster = nil; o.Parts = []client.Object{part}; o.Package = pkg }), settings: direct, deletes: 2,
		},
		"When the namespace goes it should do nothing":                 {in: seen(func(o *observed) { o.Present = false }), settings: direct},
		"When the namespace is another cluster's it should do nothing": {in: seen(func(o *observed) { o.Owner = "a/b" }), settings: direct},
		"When the namespace doesn't say whose it is it should deploy":  {in: seen(func(o *observed) { o.Owner = "" }), settings: direct, apply: 4},
		"When no image is known it should do nothing":                  {in: seen(func(o *observed) { o.Package = pkg }), settings: settings{}},
		"When there is an image of our package it should install that": {in: seen(), settings: packaged, installsByPackage: true},
		"When it was deployed before it should make place for the package first": {
			in: seen(func(o *observed) { o.Parts = []client.Object{part} }), settings: packaged, deletes: 1,
		},
		"When it was installed by a package before it should remove that first": {in: seen(func(o *observed) { o.Package = pkg }), settings: direct, deletes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p, err := planFor(c.in, c.settings)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.Apply).To(HaveLen(c.apply))
			g.Expect(p.Delete).To(HaveLen(c.deletes))
			g.Expect(p.Package != nil).To(Equal(c.installsByPackage))
		})
	}
}

func TestObjects(t *testing.T) {
	affinity := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}}}}
	toleration := corev1.Toleration{Key: "control-plane", Operator: corev1.TolerationOpExists}
	placed := seen(func(o *observed) {
		o.Cluster.Spec.NodeSelector = map[string]string{"role": "infra"}
		o.Cluster.Spec.Tolerations = []corev1.Toleration{{Key: "tenant", Operator: corev1.TolerationOpExists}}
	})
	for name, c := range map[string]struct {
		in       observed
		settings settings
		golden   string
	}{
		"When nothing is set it should deploy the least": {seen(), settings{Image: "registry.example.com/operator:1", UserID: ptr.To[int64](uid)}, "connector.yaml"},
		"When places are set it should pass them on": {
			placed, settings{Image: "registry.example.com/operator:1", Affinity: affinity, Tolerations: []corev1.Toleration{toleration}}, "connector-placed.yaml",
		},
		"When it is installed by a package it should configure that": {
			placed, settings{PackageImage: "registry.example.com/package:1", Affinity: affinity, Tolerations: []corev1.Toleration{toleration}}, "connector-package.yaml",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p, err := planFor(c.in, c.settings)
			g.Expect(err).NotTo(HaveOccurred())
			objs := p.Apply
			if p.Package != nil {
				objs = append(objs, p.Package)
			}
			var out bytes.Buffer
			for _, obj := range objs {
				raw, err := json.Marshal(obj)
				g.Expect(err).NotTo(HaveOccurred())
				doc, err := yaml.JSONToYAML(raw)
				g.Expect(err).NotTo(HaveOccurred())
				out.WriteString("---\n")
				out.Write(doc)
			}
			clitest.Golden(t, c.golden, out.String())
		})
	}
}
