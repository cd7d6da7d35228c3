package uninstall

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/install"
)

// hosting is a management cluster with the operator, the definition of HostedClusters and so many of these. It answers in pages, as a real one does.
func hosting(clusters int, funcs interceptor.Funcs) (client.WithWatch, *appsv1.Deployment) {
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: install.DefaultNamespace, Name: "operator", UID: "operator"}}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "hostedclusters." + hyperv1.GroupVersion.Group, UID: "definition"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: hyperv1.GroupVersion.Group, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "HostedCluster"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: hyperv1.GroupVersion.Version, Served: true, Storage: true}},
		},
	}
	objs := []client.Object{operator, crd}
	for i := range clusters {
		objs = append(objs, hosted(fmt.Sprintf("demo-%04d", i), "first"))
	}
	funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if err := c.List(ctx, list, opts...); err != nil {
			return err
		}
		l, ok := list.(*metav1.PartialObjectMetadataList)
		if limit := (&client.ListOptions{}).ApplyOptions(opts).Limit; ok && limit > 0 && int64(len(l.Items)) > limit {
			l.Items, l.Continue = l.Items[:limit], "more"
		}
		return nil
	}
	return fake.NewClientBuilder().WithScheme(connect.Scheme()).WithObjects(objs...).WithInterceptorFuncs(funcs).Build(), operator
}

func hosted(name, uid string) *hyperv1.HostedCluster {
	return &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name, UID: types.UID(name + "-" + uid)}}
}

func TestClustersFirst(t *testing.T) {
	destroy := func(t *testing.T, c client.WithWatch, change func(*Options)) (string, error) {
		o := NewOptions()
		o.Yes, o.DestroyClusters = true, true
		if change != nil {
			change(&o)
		}
		var out bytes.Buffer
		err := run(t.Context(), o, c, &out)
		return out.String(), err
	}
	t.Run("When somebody makes a hosted cluster again while it is destroyed it should keep the operators and say so", func(t *testing.T) {
		g := NewWithT(t)
		deleted := 0
		c, operator := hosting(1, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := c.Delete(ctx, obj, opts...); err != nil || obj.GetNamespace() != "clusters" {
				return err
			}
			deleted++
			again := hosted(obj.GetName(), fmt.Sprint("again-", deleted))
			again.Finalizers = []string{hyperv1.HostedClusterFinalizer} // of the operator, which is there
			return c.Create(ctx, again)
		}})
		_, err := destroy(t, c, nil)
		g.Expect(err).To(MatchError(And(ContainSubstring("stopped before the operators went: 1 HostedCluster (clusters/demo-0000)"),
			ContainSubstring("GitOps"), ContainSubstring("run it again"), Not(ContainSubstring("--destroy-hosted-clusters")))))
		g.Expect(deleted).To(Equal(1), "who makes it again is not fought with")
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(operator), operator)).To(Succeed())
	})
	t.Run("When somebody makes another hosted cluster meanwhile it should keep the operators, also if definitions are to stay", func(t *testing.T) {
		g := NewWithT(t)
		c, operator := hosting(1, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := c.Delete(ctx, obj, opts...); err != nil || obj.GetName() != "demo-0000" {
				return err
			}
			return c.Create(ctx, hosted("other", "first"))
		}})
		_, err := destroy(t, c, func(o *Options) { o.KeepCRDs = true })
		g.Expect(err).To(MatchError(ContainSubstring("1 HostedCluster (clusters/other)")))
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(operator), operator)).To(Succeed())
	})
	t.Run("When there are more hosted clusters than one look shows it should destroy them all before the operators", func(t *testing.T) {
		g := NewWithT(t)
		left := -1 // when the operator goes
		c, _ := hosting(maxInstances+2, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if obj.GetName() == "operator" && obj.GetObjectKind().GroupVersionKind().Kind == "Deployment" {
				list := &hyperv1.HostedClusterList{}
				g.Expect(c.List(ctx, list)).To(Succeed())
				left = len(list.Items)
			}
			return c.Delete(ctx, obj, opts...)
		}})
		out, err := destroy(t, c, nil)
		g.Expect(err).NotTo(HaveOccurred(), out)
		g.Expect(left).To(BeZero())
	})
	t.Run("When hosted clusters are on AWS it should say what stays there, and how to remove it, before anything goes", func(t *testing.T) {
		g := NewWithT(t)
		c, _ := hosting(1, interceptor.Funcs{})
		cloudy := hosted("cloudy", "first")
		cloudy.Spec.InfraID = "cloudy-abc12"
		cloudy.Spec.DNS.BaseDomain = "example.com"
		cloudy.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{Region: "eu-central-1"}}
		g.Expect(c.Create(t.Context(), cloudy)).To(Succeed())
		out, err := destroy(t, c, func(o *Options) { o.Yes = false })
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(And(
			ContainSubstring("HostedCluster clusters/cloudy, infrastructure cloudy-abc12, region eu-central-1, domain example.com: "+
				"hypershift destroy infra aws --infra-id cloudy-abc12 --region eu-central-1 --name cloudy --base-domain example.com; "+
				"hypershift destroy iam aws --infra-id cloudy-abc12 --region eu-central-1\n"),
			Not(ContainSubstring("clusters/demo-0000, infrastructure")), HaveSuffix("Run it again with --yes to delete this.\n")))
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(cloudy), cloudy)).To(Succeed())
	})
}
