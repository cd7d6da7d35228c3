package proxy_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// TestInformers follows objects with client-go's informers, whose first list is streamed or not.
func TestInformers(t *testing.T) {
	machines := schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "machines"}
	both := views(t)
	for _, streamed := range []bool{true, false} {
		for _, v := range both {
			what := "listed first"
			if streamed {
				what = "streamed from the first"
			}
			t.Run("When objects are "+what+", "+v.name+", it should see every change of them", func(t *testing.T) {
				clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, streamed)
				g := NewWithT(t)
				ctx, cancel := context.WithCancel(t.Context())
				plain, err := dynamic.NewForConfig(v.cfg)
				g.Expect(err).NotTo(HaveOccurred())
				meta, err := metadata.NewForConfig(v.cfg)
				g.Expect(err).NotTo(HaveOccurred())
				name := map[bool]string{true: "streamed", false: "listed"}[streamed]
				mine := plain.Resource(machines).Namespace(v.ns)
				create := func(name string) {
					_, err := mine.Create(ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": map[string]any{"name": name},
						"spec": map[string]any{"clusterName": "c", "bootstrap": map[string]any{"dataSecretName": "x"}, "infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "LocalMachine", "name": "m"}}}}, metav1.CreateOptions{})
					g.Expect(err).NotTo(HaveOccurred())
				}
				create(name + "-before")

				whole := dynamicinformer.NewFilteredDynamicSharedInformerFactory(plain, 0, v.ns, nil)
				parts := metadatainformer.NewFilteredSharedInformerFactory(meta, 0, v.ns, nil)
				stores := []cache.Store{whole.ForResource(machines).Informer().GetStore(), parts.ForResource(machines).Informer().GetStore()}
				whole.Start(ctx.Done())
				parts.Start(ctx.Done())
				defer func() {
					cancel()
					whole.Shutdown()
					parts.Shutdown()
				}()
				g.Expect(whole.WaitForCacheSync(ctx.Done())).To(HaveKeyWithValue(machines, true))
				g.Expect(parts.WaitForCacheSync(ctx.Done())).To(HaveKeyWithValue(machines, true))

				has := func(name string) func() bool {
					return func() bool {
						for _, s := range stores {
							if _, ok, err := s.GetByKey(v.ns + "/" + name); !ok || err != nil {
								return false
							}
						}
						return true
					}
				}
				g.Expect(has(name + "-before")()).To(BeTrue())
				create(name + "-after")
				g.Eventually(has(name+"-after"), "60s").Should(BeTrue())
				obj, _, _ := stores[0].GetByKey(v.ns + "/" + name + "-after")
				g.Expect(obj.(*unstructured.Unstructured).GetAPIVersion()).To(Equal("cluster.x-k8s.io/v1beta2"))
				part, _, _ := stores[1].GetByKey(v.ns + "/" + name + "-after")
				g.Expect(part.(*metav1.PartialObjectMetadata).ManagedFields[0].APIVersion).To(Equal("cluster.x-k8s.io/v1beta2"))
				alone, err := meta.Resource(machines).Namespace(v.ns).Get(ctx, name+"-after", metav1.GetOptions{}) // in protobuf
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(alone.ManagedFields[0].APIVersion).To(Equal("cluster.x-k8s.io/v1beta2"))
				_, err = mine.Patch(ctx, name+"-after", types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"yes"}}}`), metav1.PatchOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Eventually(func() string {
					obj, ok, _ := stores[1].GetByKey(v.ns + "/" + name + "-after")
					if !ok {
						return ""
					}
					return obj.(*metav1.PartialObjectMetadata).Labels["seen"]
				}, "60s").Should(Equal("yes"))
				g.Expect(mine.Delete(ctx, name+"-before", metav1.DeleteOptions{})).To(Succeed())
				g.Eventually(has(name+"-before"), "60s").Should(BeFalse())
			})
		}
	}
}
