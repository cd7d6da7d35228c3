package uninstall

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/install"
)

// fewKinds are the definitions that the tests here go with: one of us, and those that other products have, too.
var fewKinds = map[string]bool{
	"hostedclusters.hypershift.openshift.io": true, "packages.package-operator.run": true,
	"agentmachines.capi-provider.agent-install.openshift.io": true, "images.openstack.k-orc.cloud": true,
}

// inventoryOf is the inventory without most definitions, and without kinds that the API server hasn't got.
func inventoryOf(g Gomega) (objs []client.Object) {
	all, err := install.Inventory(install.DefaultNamespace)
	g.Expect(err).NotTo(HaveOccurred())
	for _, obj := range all {
		_, definition := obj.(*apiextensionsv1.CustomResourceDefinition)
		if definition && !fewKinds[obj.GetName()] || obj.GetObjectKind().GroupVersionKind().Group == "monitoring.coreos.com" {
			continue
		}
		objs = append(objs, obj)
	}
	return objs
}

// shared tells which objects of an inventory other products have, too.
func shared(obj client.Object) bool {
	switch obj.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		return obj.GetName() != "hostedclusters.hypershift.openshift.io"
	case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
		return obj.GetName() == "external-dns" || obj.GetName() == "package-operator-manager"
	case *schedulingv1.PriorityClass:
		return obj.GetName() == "hypershift-etcd"
	}
	return obj.GetNamespace() == install.PackageOperatorNamespace || obj.GetName() == install.PackageOperatorNamespace
}

// createAs creates an object as another program does.
func createAs(t *testing.T, c client.Client, obj client.Object, manager string) {
	t.Helper()
	u, err := connect.Unstructured(c.Scheme(), obj)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(c.Create(t.Context(), u, client.FieldOwner(manager))).To(Succeed(), "%s", connect.Describe(u))
}

// testOthers uninstalls from a server on which other products have objects with names of ours.
func testOthers(t *testing.T, c client.Client, uninstall func(change func(*Options)) (string, error)) {
	there := func(g Gomega, obj client.Object) bool {
		live := &metav1.PartialObjectMetadata{}
		u, err := connect.Unstructured(c.Scheme(), obj)
		g.Expect(err).NotTo(HaveOccurred())
		live.SetGroupVersionKind(u.GroupVersionKind())
		err = c.Get(t.Context(), client.ObjectKeyFromObject(obj), live)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		return err == nil
	}
	t.Run("When other products have objects with names of ours they should stay, and it should say so", func(t *testing.T) {
		g := NewWithT(t)
		var theirs []client.Object
		for _, obj := range inventoryOf(g) {
			if !shared(obj) {
				_, err := connect.Apply(t.Context(), c, obj)
				g.Expect(err).NotTo(HaveOccurred(), "applying %s", connect.DescribeIn(c.Scheme(), obj))
				continue
			}
			if class, ok := obj.(*schedulingv1.PriorityClass); ok {
				class.Value, class.Description = 1000, "of another product"
			}
			obj.SetLabels(nil)
			obj.SetAnnotations(nil)
			createAs(t, c, obj, "helm")
			theirs = append(theirs, obj)
		}
		pack := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: packagesv1.PackageSpec{Image: "registry.example.com/web:1"}}
		g.Eventually(func() error { return c.Create(t.Context(), pack.DeepCopy()) }).Should(Succeed(), "once its kind is served")

		out, err := uninstall(func(o *Options) { o.Yes = true })
		g.Expect(err).NotTo(HaveOccurred(), "packages of another operator are not in the way")
		for _, obj := range theirs {
			g.Expect(there(g, obj)).To(BeTrue(), "deleted: %s", connect.DescribeIn(c.Scheme(), obj))
			g.Expect(out).To(MatchRegexp(`These stay:\n(  .*\n)*  %s: it has another owner\n`, connect.DescribeIn(c.Scheme(), obj)))
		}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(pack), pack)).To(Succeed())
		operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: install.DefaultNamespace, Name: "operator"}}
		g.Expect(there(g, operator)).To(BeFalse(), "ours goes")

		g.Expect(c.Delete(t.Context(), pack)).To(Succeed())
		for _, obj := range theirs {
			g.Expect(client.IgnoreNotFound(c.Delete(t.Context(), obj))).To(Succeed())
		}
		for _, obj := range theirs {
			g.Eventually(func(g Gomega) { g.Expect(there(g, obj)).To(BeFalse()) }).Should(Succeed())
		}
	})
	t.Run("When manifests of ours were applied by another program they should go", func(t *testing.T) {
		g := NewWithT(t)
		objs := inventoryOf(g)
		for _, obj := range objs {
			createAs(t, c, obj, "kubectl-client-side-apply")
		}
		out, err := uninstall(func(o *Options) { o.Yes = true })
		g.Expect(err).NotTo(HaveOccurred())
		for _, obj := range objs {
			g.Expect(there(g, obj)).To(BeFalse(), "left: %s", connect.DescribeIn(c.Scheme(), obj))
		}
		g.Expect(out).NotTo(ContainSubstring("These stay"))
	})
	t.Run("When another product replaced a definition of ours it should stay", func(t *testing.T) {
		g := NewWithT(t)
		for _, obj := range inventoryOf(g) {
			if obj.GetName() != "images.openstack.k-orc.cloud" {
				continue
			}
			_, err := connect.Apply(t.Context(), c, obj)
			g.Expect(err).NotTo(HaveOccurred())
			obj.SetAnnotations(nil)
			theirs := obj.(*apiextensionsv1.CustomResourceDefinition)
			theirs.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "of another product"
			u, err := connect.Unstructured(c.Scheme(), theirs)
			g.Expect(err).NotTo(HaveOccurred())
			unstructured.RemoveNestedField(u.Object, "status")
			g.Expect(c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("orc"), client.ForceOwnership)).To(Succeed())
			out, err := uninstall(func(o *Options) { o.Yes = true })
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(there(g, obj)).To(BeTrue())
			g.Expect(out).To(ContainSubstring("CustomResourceDefinition images.openstack.k-orc.cloud: it has another owner"))
			g.Expect(c.Delete(t.Context(), theirs)).To(Succeed())
		}
	})
}
