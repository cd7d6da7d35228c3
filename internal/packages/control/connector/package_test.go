package connector

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/fixture"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/control/operatorpackage"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

// TestOperatorInHostedCluster installs our own component hosted-cluster, and takes it away again.
func TestOperatorInHostedCluster(t *testing.T) {
	g := NewWithT(t)
	hosted := testenv.StartOther(t)
	p := newPair(t, hosted)
	p.publish(t, hosted.Kubeconfig(t))
	p.connect(t)
	p.RunDeployments(t)

	files, err := operatorpackage.Files("registry.example.com/package-operator@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	g.Expect(err).NotTo(HaveOccurred())
	component, err := load.Load(t.Context(), files, "hosted-cluster")
	g.Expect(err).NotTo(HaveOccurred())
	in := component.Manifest.Test.Template[0].Context
	in.Package.Namespace = p.ns
	rendered, err := fixture.Render(t.Context(), component, in)
	g.Expect(err).NotTo(HaveOccurred())
	template, err := rendered.Template(component, "packages")
	g.Expect(err).NotTo(HaveOccurred())
	set := packagestest.ObjectSet(p.ns, "packages", 1, template.Phases...)
	set.Spec.AvailabilityProbes = template.AvailabilityProbes

	const namespace, name, deployment = "package-operator-system", "package-operator-manager", "package-operator-hosted-cluster-manager"
	there := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "package-operator"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}},
	}
	t.Run("When it is installed the kinds and the account should be in the hosted cluster, and the pods beside the control plane", func(t *testing.T) {
		g := NewWithT(t)
		p.create(t, set)
		p.setIs(t, "packages", metav1.ConditionTrue, v1alpha1.ReasonAvailable)
		for _, obj := range there {
			g.Expect(p.there.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		}
		g.Expect(p.there.List(t.Context(), &v1alpha1.PackageList{})).To(Succeed(), "the kinds are served")
		d := &appsv1.Deployment{}
		g.Expect(p.Client.Get(t.Context(), client.ObjectKey{Namespace: p.ns, Name: deployment}, d)).To(Succeed())
		g.Expect(apierrors.IsNotFound(p.there.Get(t.Context(), client.ObjectKey{Namespace: p.ns, Name: deployment}, d))).To(BeTrue())
	})
	t.Run("When it is removed the pods should go first, and at last the kinds", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(p.Client.Delete(t.Context(), set)).To(Succeed())
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		p.eventually(t, ns, func() error {
			if ns.DeletionTimestamp.IsZero() {
				return errors.New("the namespace is not deleted yet")
			}
			ns.Spec.Finalizers = nil // in place of the controller of namespaces
			return p.there.SubResource("finalize").Update(t.Context(), ns)
		})
		p.Gone(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: deployment}})
		for _, obj := range there {
			p.gone(t, obj)
		}
		// How long the API server takes to clean up after them is its own affair.
		g.Eventually(func() ([]metav1.PartialObjectMetadata, error) {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
			err := p.there.List(t.Context(), list, client.MatchingLabels{v1alpha1.CacheLabel: v1alpha1.CacheLabelValue})
			return list.Items, err
		}).WithTimeout(time.Minute).Should(Or(BeEmpty(), HaveEach(HaveField("DeletionTimestamp", Not(BeNil())))))
	})
}
