package hostedcluster

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	definitions "hcp.internal/platform/config"
	"hcp.internal/platform/internal/capigroup/translate"
)

// platformOwner is somebody else who has Cluster API's standard definitions on the same management cluster.
type platformOwner struct{ w *world }

func (p platformOwner) definitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	g := NewWithT(t)
	all, err := definitions.CAPICRDs()
	g.Expect(err).NotTo(HaveOccurred())
	ours, err := definitions.CRDs("")
	g.Expect(err).NotTo(HaveOccurred())
	for _, crd := range ours {
		if translate.InDomain(crd.Spec.Group) {
			all = append(all, crd)
		}
	}
	return all
}

func (p platformOwner) install(t *testing.T) {
	p.w.env.Install(t, p.definitions(t)...)
}

// change edits every definition.
func (p platformOwner) change(t *testing.T, edit func(*apiextensionsv1.CustomResourceDefinition)) {
	t.Helper()
	g := NewWithT(t)
	for _, crd := range p.definitions(t) {
		g.Eventually(func() error {
			live := &apiextensionsv1.CustomResourceDefinition{}
			if err := p.admin(t).Get(t.Context(), client.ObjectKeyFromObject(crd), live); err != nil {
				return err
			}
			edit(live)
			return p.admin(t).Update(t.Context(), live)
		}, patience, often).Should(Succeed(), crd.Name)
	}
}

func (p platformOwner) remove(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	for _, crd := range p.definitions(t) {
		p.release(t, crd)
		g.Expect(client.IgnoreNotFound(p.admin(t).Delete(t.Context(), crd))).To(Succeed())
	}
	for _, crd := range p.definitions(t) {
		g.Eventually(func() (any, error) {
			live := &apiextensionsv1.CustomResourceDefinition{}
			err := p.admin(t).Get(t.Context(), client.ObjectKeyFromObject(crd), live)
			return live.Status.Conditions, client.IgnoreNotFound(err)
		}, patience, often).Should(BeEmpty(), crd.Name)
	}
}

// release takes the finalizers from the objects of a definition: tests before this one leave some, and no Cluster API runs to end them.
func (p platformOwner) release(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	g := NewWithT(t)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(unstructuredOf(crd.Spec.Group, "v9", crd.Spec.Names.ListKind).GroupVersionKind())
	g.Expect(p.admin(t).List(t.Context(), list)).To(Succeed())
	for _, item := range list.Items {
		none := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		g.Expect(client.IgnoreNotFound(p.admin(t).Patch(t.Context(), &item, none))).To(Succeed())
	}
}

// readable waits until the API server serves the objects of every definition by what the definition says now. It deletes the objects of a
// definition that goes by the way in which it serves them, and one that failed it tries again minutes later.
func (p platformOwner) readable(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	for _, crd := range p.definitions(t) {
		live := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(p.admin(t).Get(t.Context(), client.ObjectKeyFromObject(crd), live)).To(Succeed())
		for _, v := range live.Spec.Versions {
			if !v.Served {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(unstructuredOf(crd.Spec.Group, v.Name, crd.Spec.Names.ListKind).GroupVersionKind())
			g.Eventually(func() error { return p.admin(t).List(t.Context(), list) }, patience, often).Should(Succeed(), crd.Name+" "+v.Name)
		}
	}
}

func (p platformOwner) admin(t *testing.T) client.Client {
	t.Helper()
	scheme, err := NewScheme()
	if err == nil {
		err = apiextensionsv1.AddToScheme(scheme)
	}
	c, cerr := client.New(p.w.env.Config, client.Options{Scheme: scheme})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(cerr).NotTo(HaveOccurred())
	return c
}

// startPrivate runs the operator for private types, with its caches and watches, behind the proxy at cfg.
func (w *world) startPrivate(t *testing.T, cfg *rest.Config) {
	t.Helper()
	w.run(t, cfg, func(r *Reconciler) { r.PrivateCAPI, r.Capabilities.ClusterAPI = true, true })
}

// identity is what of the stored objects must not move.
func (w *world) identity(t *testing.T, ns string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, kind := range [][3]string{
		{translate.Private, "v1beta2", "Cluster"}, {"infrastructure." + translate.Private, "v1beta1", "LocalCluster"},
		{"hypershift.openshift.io", "v1beta1", "HostedControlPlane"}, {"apps", "v1", "Deployment"}, {"rbac.authorization.k8s.io", "v1", "Role"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(unstructuredOf(kind[0], kind[1], kind[2]+"List").GroupVersionKind())
		NewWithT(t).Expect(w.client.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
		for _, item := range list.Items {
			found[kind[2]+"/"+item.GetName()] = fmt.Sprint(item.GetUID(), " ", item.GetGeneration(), " ", item.GetDeletionTimestamp())
		}
	}
	return found
}

func TestPlatformIsolation(t *testing.T) {
	w := newWorld(t)
	p := platformOwner{w}
	// Others use the standard definitions of this API server after us.
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, crd := range p.definitions(t) {
			live := &apiextensionsv1.CustomResourceDefinition{}
			if p.admin(t).Get(ctx, client.ObjectKeyFromObject(crd), live) == nil && live.Spec.Conversion != nil && live.Spec.Conversion.Webhook != nil {
				_ = p.admin(t).Delete(ctx, live)
			}
		}
	})
	cfg, through := w.behindProxy(t)
	ctx, ns := t.Context(), w.ns+"-demo"
	w.startPrivate(t, cfg)
	g := NewWithT(t)
	g.Expect(w.client.Create(ctx, w.withMachines(t))).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(w.condition(ctx, "demo", hyperv1.PrivateCAPITypes)()).To(Equal("True/PrivateTypesInUse"))
		g.Expect(w.identity(t, ns)).To(And(HaveKey("Cluster/demo-abcde"), HaveKey("LocalCluster/demo"), HaveKey("Deployment/capi-provider"), HaveKey("Role/capi-provider")))
	}, patience, often).Should(Succeed())

	paused := false
	// works changes the hosted cluster and waits until that has reached the stored objects, through the operator's caches and watches.
	works := func(g Gomega) {
		paused = !paused
		body := fmt.Appendf(nil, `{"spec":{"pausedUntil":%q}}`, fmt.Sprint(paused))
		g.Expect(w.client.Patch(ctx, w.hostedCluster(), client.RawPatch("application/merge-patch+json", body))).To(Succeed())
		g.Eventually(func() (any, error) {
			cluster, err := w.stored(ctx, translate.Private, "v1beta2", "Cluster", ns, "demo-abcde")
			got, _, _ := unstructured.NestedBool(cluster, "spec", "paused")
			return got, err
		}, patience, often).Should(Equal(paused))
	}
	works(g)
	works(g)
	steps := []struct {
		name string
		do   func(t *testing.T)
	}{
		{"has its definitions and an object of the same name", func(t *testing.T) {
			NewWithT(t).Expect(p.admin(t).Create(ctx, &clusterv1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo-abcde", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: w.ns + "/demo"}},
				Spec:       clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "example.com", Kind: "Foreign", Name: "x"}},
			})).To(Succeed())
		}},
		{"upgrades them to another stored version", func(t *testing.T) {
			p.change(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
				next := *crd.Spec.Versions[0].DeepCopy()
				crd.Spec.Versions[0].Storage = false
				next.Name = "v9"
				crd.Spec.Versions = append(crd.Spec.Versions, next)
			})
		}},
		{"breaks them by a webhook that nobody serves", func(t *testing.T) {
			p.change(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/convert")}, ConversionReviewVersions: []string{"v1"},
				}}
			})
			NewWithT(t).Eventually(func() error {
				_, err := w.stored(ctx, translate.Standard, "v9", "Cluster", ns, "demo-abcde")
				return err
			}, patience, often).Should(MatchError(ContainSubstring("conversion webhook")), "the platform's own objects are out of reach")
		}},
		{"deletes them with all their objects", func(t *testing.T) {
			p.change(t, func(crd *apiextensionsv1.CustomResourceDefinition) { // or their objects could not be deleted
				crd.Spec.Conversion = nil
			})
			p.readable(t)
			p.remove(t)
		}},
		{"installs them again", p.install},
	}
	for _, step := range steps {
		t.Run("When the platform "+step.name+" nothing of a hosted cluster should move", func(t *testing.T) {
			g := NewWithT(t)
			before := w.identity(t, ns)
			step.do(t)
			g.Expect(w.identity(t, ns)).To(Equal(before))
			works(g)
			works(g)
			after := w.identity(t, ns)
			for name, was := range before {
				g.Expect(strings.Fields(after[name])[0]).To(Equal(strings.Fields(was)[0]), "%s is another object", name)
			}
			// A program behind the proxy finds its objects, and nothing of the platform's.
			list := &clusterv1.ClusterList{}
			g.Expect(through.List(ctx, list, client.InNamespace(ns))).To(Succeed())
			g.Expect(list.Items).To(HaveLen(1))
			g.Expect(list.Items[0].Spec.InfrastructureRef.Kind).To(Equal("LocalCluster"))
		})
	}
	t.Run("When the platform's groups are asked for by the private name behind the proxy they should not be there", func(t *testing.T) {
		g := NewWithT(t)
		c, err := rest.HTTPClientFor(cfg)
		g.Expect(err).NotTo(HaveOccurred())
		resp, err := c.Get(cfg.Host + "/apis/" + translate.Private)
		g.Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		g.Expect(resp.StatusCode).To(Equal(http.StatusNotFound))
	})
}
