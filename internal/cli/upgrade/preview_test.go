package upgrade

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/hostedclustertest"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const registry = "registry.example.com/hypershift"

// releases answers by the image's tag, with the images of a recorded release.
type releases struct{}

func (releases) Lookup(_ context.Context, image string, _ []byte) (*release.Release, error) {
	raw, err := os.ReadFile("../render/testdata/release.json")
	if err != nil {
		return nil, err
	}
	r, err := release.ParseMetadata(raw)
	if err != nil {
		return nil, err
	}
	_, tag, ok := strings.Cut(image, "release:")
	if !ok {
		return nil, fmt.Errorf("%w: %s", release.ErrNotFound, image)
	}
	if tag != r.Version {
		for name, of := range r.Images {
			r.Images[name] = of + "-of-" + tag
		}
	}
	r.Image, r.Version, r.KubernetesVersion = image, tag, tag
	return r, nil
}

// world is a management cluster with a hosted cluster.
func world(t *testing.T) (*preview, string) {
	t.Helper()
	g := NewWithT(t)
	env := testenv.Start(t)
	c, err := newClients(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	ns := env.Namespace(t)
	hcp := &hyperv1.HostedControlPlane{}
	raw, err := os.ReadFile("../render/testdata/hcp.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.Unmarshal(raw, hcp)).To(Succeed())
	plane := names.ControlPlaneNamespace(ns, "demo")
	hcp.ObjectMeta = metav1.ObjectMeta{Namespace: plane, Name: "demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: ns + "/demo"}}
	hcp.Spec.ReleaseImage = registry + "/release:1.36.3"
	hc := hostedclustertest.Example(ns, registry+"/release:1.36.3", func(hc *hyperv1.HostedCluster) { hc.Name = "demo" })
	labels := map[string]string{"app": "cpo"}
	operators := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: plane, Name: names.ControlPlaneOperator}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "cpo", Image: registry + "/operator:1.0"}}}},
	}}
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: plane, Annotations: map[string]string{hyperv1.HostedClusterAnnotation: ns + "/demo"}}}, hc, hcp, operators,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: hc.Spec.PullSecret.Name}, Data: map[string][]byte{names.DockerConfigKey: []byte(`{"auths":{}}`)}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: plane, Name: hcp.Spec.PullSecret.Name}, Data: map[string][]byte{names.DockerConfigKey: []byte(`{"auths":{}}`)}},
	} {
		g.Expect(c.standard.Create(t.Context(), obj)).To(Succeed(), "%T", obj)
	}
	return &preview{options: &options{namespace: ns, operators: "hypershift"}, clients: c, releases: releases{}}, ns
}

func TestPreview(t *testing.T) {
	p, ns := world(t)
	run := func(g *WithT, change func(*options)) Cluster {
		o := *p.options
		change(&o)
		one := *p
		one.options = &o
		report, err := one.run(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(report.Clusters).To(HaveLen(1))
		g.Expect(report.Definitions).To(BeEmpty())
		return report.Clusters[0]
	}
	t.Run("When the operators get another image it should name what runs it, and nothing of another component", func(t *testing.T) {
		g := NewWithT(t)
		got := run(g, func(o *options) { o.image = registry + "/operator:1.1" })
		g.Expect(got.Problems).To(BeEmpty())
		g.Expect(got.Restarts).To(ContainElement("Deployment control-plane-operator"))
		g.Expect(got.Restarts).NotTo(ContainElement("Deployment kube-scheduler"))
		for _, c := range got.Changes {
			g.Expect(c.From).To(ContainSubstring("operator:1.0"), c.String())
			g.Expect(c.To).To(ContainSubstring("operator:1.1"), c.String())
		}
	})
	t.Run("When it is the image that runs it should change nothing", func(t *testing.T) {
		g := NewWithT(t)
		got := run(g, func(o *options) { o.image = registry + "/operator:1.0" })
		g.Expect(got.Problems).To(BeEmpty())
		g.Expect(got.Changes).To(BeEmpty())
		g.Expect(got.Restarts).To(BeEmpty())
	})
	t.Run("When a release is to come it should say from which to which, and which pods restart", func(t *testing.T) {
		g := NewWithT(t)
		got := run(g, func(o *options) { o.release = registry + "/release:1.36.4" })
		g.Expect(got.Problems).To(BeEmpty())
		g.Expect(got.From + " " + got.To + " " + got.Refused).To(Equal("1.36.3 1.36.4 "))
		g.Expect(got.Restarts).To(ContainElements("StatefulSet etcd", "Deployment kube-apiserver", "Deployment kube-scheduler"))
	})
	t.Run("When a release is too far away it should say that it would be refused", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(run(g, func(o *options) { o.release = registry + "/release:1.20.0" }).Refused).NotTo(BeEmpty())
	})
	t.Run("When a release can't be read it should be a problem of that cluster", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(run(g, func(o *options) { o.release = registry + "/other:1" }).Problems).To(ContainElement(ContainSubstring("other:1")))
	})
	t.Run("When it is asked for a cluster that is not there it should end with the code for that", func(t *testing.T) {
		one, o := *p, *p.options
		o.image, o.cluster = "x", "nothing"
		one.options = &o
		_, err := one.run(t.Context())
		NewWithT(t).Expect(exit.Code(err)).To(Equal(exit.NotFound))
	})
	t.Run("When objects of Cluster API are stored in private groups it should see them as standard ones", func(t *testing.T) {
		g := NewWithT(t)
		list := &hyperv1.HostedClusterList{} // what is not of Cluster API goes through as it is
		g.Expect(p.clients.private.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))
	})
}
