package clitest_test

import (
	"bytes"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/cli/install"
)

// TestInstallBesideOldClusters is one test with ordered steps: what is installed depends on what was.
func TestInstallBesideOldClusters(t *testing.T) {
	f, c, env := flags(t)
	clusters, namespace := env.Namespace(t), "hypershift-brownfield"
	ctx := t.Context()
	run := func(choice string) (string, error) {
		o := installOptions(f, namespace)
		o.PrivateCAPI = choice
		var out bytes.Buffer
		err := install.Run(ctx, o, &out)
		return out.String(), err
	}
	groups := func(g Gomega) []string {
		role := &rbacv1.ClusterRole{}
		g.Expect(c.Get(ctx, client.ObjectKey{Name: "hypershift-operator"}, role)).To(Succeed())
		var all []string
		for _, rule := range role.Rules {
			if !slices.Contains(rule.APIGroups, "apiextensions.k8s.io") {
				all = append(all, rule.APIGroups...)
			}
		}
		return all
	}
	mode := func(g Gomega) string {
		state := &corev1.ConfigMap{}
		g.Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "private-capi-state"}, state)).To(Succeed())
		return state.Data["mode"]
	}
	legacy := func() error {
		return c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "operator-legacy"}, &appsv1.Deployment{})
	}
	hosted := func(g Gomega, name string, annotations map[string]string) *hyperv1.HostedCluster {
		o := clusterOptions(connect.Flags{}, hyperv1.LocalPlatform, clusters)
		o.Name = name
		for _, obj := range create.Objects(o, create.Generated{}) {
			if hc, ok := obj.(*hyperv1.HostedCluster); ok {
				hc.Annotations, hc.Finalizers = annotations, []string{hyperv1.HostedClusterFinalizer}
				g.Expect(c.Create(ctx, hc)).To(Succeed())
				return hc
			}
		}
		return nil
	}
	forget := func(g Gomega, hc *hyperv1.HostedCluster) {
		g.Expect(c.Patch(ctx, hc, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		g.Expect(c.Delete(ctx, hc)).To(Succeed())
	}
	var old, private *hyperv1.HostedCluster
	for _, step := range []struct {
		name string
		do   func(g Gomega)
	}{
		{"When there are hosted clusters from before it should stay with standard types", func(g Gomega) {
			old = hosted(g, "old", nil)
			out, err := run(install.CAPIAuto)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out).To(ContainSubstring("types: standard (there are hosted clusters from before (" + clusters + "/old)"))
			g.Expect(mode(g)).To(Equal("standard"))
			g.Expect(groups(g)).To(And(ContainElement(translate.Standard), Not(ContainElement(translate.Private))))
		}},
		{"When private types are asked for then it should keep the old ones going", func(g Gomega) {
			_, err := run(install.CAPIPrivate)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mode(g)).To(Equal("private"))
			g.Expect(legacy()).To(Succeed())
			g.Expect(groups(g)).To(ContainElements(translate.Standard, translate.Private))
		}},
		{"When it is run again it should change nothing", func(g Gomega) {
			out, err := run(install.CAPIAuto)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out).NotTo(MatchRegexp("(?m)created|changed "))
			g.Expect(out).To(ContainSubstring("operator-legacy"))
		}},
		{"When standard types are asked for beside a private hosted cluster it should refuse, and change nothing", func(g Gomega) {
			private = hosted(g, "new", map[string]string{hyperv1.PrivateCAPITypesAnnotation: "true"})
			out, err := run(install.CAPIStandard)
			g.Expect(err).To(MatchError(And(ContainSubstring(clusters+"/new"), ContainSubstring("--private-capi-types=true"))))
			g.Expect(out).NotTo(ContainSubstring("changed"))
			g.Expect(mode(g)).To(Equal("private"))
		}},
		{"When the last old hosted cluster is gone it should give up the rights to standard types", func(g Gomega) {
			forget(g, old)
			_, err := run(install.CAPIAuto)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(groups(g)).To(And(ContainElement(translate.Private), Not(ContainElement(translate.Standard))))
		}},
		{"When no private hosted cluster is left it should go back to standard types if asked to", func(g Gomega) {
			forget(g, private)
			_, err := run(install.CAPIStandard)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mode(g)).To(Equal("standard"))
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "operator"}}
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
			g.Expect(d.Spec.Template.Spec.InitContainers).To(BeEmpty())
		}},
	} {
		t.Run(step.name, func(t *testing.T) { step.do(NewWithT(t)) })
		if t.Failed() {
			return
		}
	}
}
