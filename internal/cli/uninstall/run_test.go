package uninstall

import (
	"bytes"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/placement"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// TestUninstall removes an installation from a real API server, whose definitions it takes away: it is the only test that uses that server.
func TestUninstall(t *testing.T) {
	env := testenv.Start(t)
	env.StartControllers(t)
	c := env.Client(t, connect.Scheme())
	g := NewWithT(t)

	inventory, err := install.Inventory(install.DefaultNamespace)
	g.Expect(err).NotTo(HaveOccurred())
	for _, obj := range inventory {
		if obj.GetObjectKind().GroupVersionKind().Group == "monitoring.coreos.com" {
			continue // kinds that this API server hasn't got, as most haven't
		}
		_, err := connect.Apply(t.Context(), c, obj)
		g.Expect(err).NotTo(HaveOccurred(), "applying %s", connect.DescribeIn(c.Scheme(), obj))
	}
	uninstall := func(change func(*Options)) (string, error) {
		o := NewOptions()
		if change != nil {
			change(&o)
		}
		var out bytes.Buffer
		err := run(t.Context(), o, c, &out)
		t.Logf("%s", out.String())
		return out.String(), err
	}
	exists := func(obj client.Object) bool {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		return err == nil
	}
	operator := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: install.DefaultNamespace, Name: "operator"}}

	// The operator makes it with the first hosted cluster, and it is of all of them.
	shared := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "hypershift-cluster-api", Labels: map[string]string{names.OwnedByLabel: names.HypershiftOperator}}}
	g.Expect(c.Create(t.Context(), shared)).To(Succeed())
	// With sizes it makes this one for pairs of nodes, and placeholders there.
	pairs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placement.Namespace}}
	g.Expect(c.Create(t.Context(), pairs)).To(Succeed())
	g.Expect(c.Create(t.Context(), placement.Placeholder{Name: "placeholder-small-0", Size: "small", Count: 2}.Deployment(placement.Namespace, "registry.example.com/operator:1", nil))).To(Succeed())
	out, err := uninstall(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(And(ContainSubstring("Deployment hypershift/operator"), HaveSuffix("Nothing was deleted. Run it again with --yes to delete this.\n")))
	g.Expect(exists(operator)).To(BeTrue())

	pack := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: packagesv1.PackageSpec{Image: "registry.example.com/web:1"}}
	g.Expect(c.Create(t.Context(), pack)).To(Succeed())
	_, err = uninstall(func(o *Options) { o.Yes = true })
	g.Expect(err).To(MatchError(And(ContainSubstring("nothing was deleted: 1 Package (default/web)"), ContainSubstring("--delete-packages"))))
	g.Expect(exists(operator)).To(BeTrue(), "what is in the way keeps everything")

	out, err = uninstall(func(o *Options) { o.Yes, o.DeletePackages = true, true })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("uninstalled"))
	for _, obj := range inventory {
		if obj.GetObjectKind().GroupVersionKind().Group == "monitoring.coreos.com" {
			continue
		}
		g.Expect(exists(obj.DeepCopyObject().(client.Object))).To(BeFalse(), "left: %s", connect.DescribeIn(c.Scheme(), obj))
	}
	g.Expect(exists(shared)).To(BeFalse(), "left: what the operator made")
	g.Expect(exists(pairs)).To(BeFalse(), "left: the namespace of placeholders")
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	g.Expect(c.List(t.Context(), crds)).To(Succeed())
	for _, crd := range crds.Items {
		// The test's own server has standard definitions that nobody applied with our field owner.
		g.Expect(install.OwnsCRD(&crd, crd.Spec.Group)).To(BeFalse(), "left: %s", crd.Name)
	}

	out, err = uninstall(func(o *Options) { o.Yes = true })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("nothing is installed"))
	g.Expect(apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: install.DefaultNamespace}, &corev1.Namespace{}))).To(BeTrue())

	testOthers(t, c, uninstall)
}
