package install

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
)

// inPages answers lists of metadata in pages, as an API server does.
func inPages(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	from, _ := strconv.Atoi(o.Continue) // 0: the first page
	if err := c.List(ctx, list); err != nil {
		return err
	}
	l := list.(*metav1.PartialObjectMetadataList)
	if l.Items = l.Items[from:]; o.Limit > 0 && int64(len(l.Items)) > o.Limit {
		l.Items, l.Continue = l.Items[:o.Limit], strconv.Itoa(from+int(o.Limit))
	}
	return nil
}

func TestManyHostedClusters(t *testing.T) {
	t.Run("When there are more hosted clusters than one page has it should look at all of them", func(t *testing.T) {
		g := NewWithT(t)
		const count = 1001
		var objs []client.Object
		for i := range count {
			objs = append(objs, &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{
				Namespace: "clusters", Name: fmt.Sprintf("demo-%04d", i), Annotations: map[string]string{hyperv1.PrivateCAPITypesAnnotation: "true"},
			}})
		}
		mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{hyperv1.GroupVersion})
		mapper.Add(hyperv1.GroupVersion.WithKind("HostedCluster"), meta.RESTScopeNamespace)
		c := fake.NewClientBuilder().WithScheme(connect.Scheme()).WithRESTMapper(mapper).WithObjects(objs...).WithInterceptorFuncs(interceptor.Funcs{List: inPages}).Build()
		evidence, err := lookAtCAPI(t.Context(), c, Options{Namespace: DefaultNamespace, PrivateCAPI: CAPIAuto})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(evidence.private).To(HaveLen(count))
	})
}
