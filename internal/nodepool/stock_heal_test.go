package nodepool

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/kube/apply"
)

// asBefore is a client that writes MachineDeployments and MachineSets as operators did that knew nothing of Cluster API's webhooks.
func asBefore(t testing.TB, c client.WithWatch) client.WithWatch {
	strip := func(content map[string]any) {
		if kind := content["kind"]; kind != "MachineDeployment" && kind != "MachineSet" {
			return
		}
		unstructured.RemoveNestedField(content, "spec", "selector", "matchLabels", clusterv1.ClusterNameLabel)
		version, _, _ := unstructured.NestedString(content, "spec", "template", "spec", "version")
		unstructured.RemoveNestedField(content, "metadata", "annotations", apply.HashAnnotation)
		if err := unstructured.SetNestedField(content, strings.TrimPrefix(version, "v"), "spec", "template", "spec", "version"); err != nil {
			t.Error(err)
		}
		hash, err := apply.Hash(content)
		if err == nil {
			err = unstructured.SetNestedField(content, hash, "metadata", "annotations", apply.HashAnnotation)
		}
		if err != nil {
			t.Error(err)
		}
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if u, ok := obj.(interface{ UnstructuredContent() map[string]any }); ok {
				strip(u.UnstructuredContent())
			}
			return c.Apply(ctx, obj, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if u, ok := obj.(*unstructured.Unstructured); ok {
				strip(u.Object)
			}
			return c.Create(ctx, obj, opts...)
		},
	})
}

// written tells the writes to objects of a pool, by whomever, as they come, for as long as the context lives.
func (w *world) written(ctx context.Context, t testing.TB) <-chan string {
	t.Helper()
	g := NewWithT(t)
	events := make(chan string)
	for _, list := range []client.ObjectList{
		&clusterv1.ClusterList{}, &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineList{}, &clusterv1.MachineHealthCheckList{},
		&infrav1.LocalMachineTemplateList{}, &infrav1.LocalMachineList{}, &infrav1.LocalClusterList{}, &corev1.SecretList{}, &hyperv1.NodePoolList{},
	} {
		ns := w.hcpNS
		if _, ok := list.(*hyperv1.NodePoolList); ok {
			ns = w.ns
		}
		g.Expect(w.client.List(ctx, list, client.InNamespace(ns))).To(Succeed())
		watch, err := w.client.Watch(ctx, list, client.InNamespace(ns), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		g.Expect(err).NotTo(HaveOccurred())
		context.AfterFunc(ctx, watch.Stop)
		go func() {
			for e := range watch.ResultChan() {
				name := string(e.Type)
				if obj, ok := e.Object.(client.Object); ok {
					name = fmt.Sprintf("%T %s", obj, obj.GetName())
				}
				select {
				case events <- name:
				case <-ctx.Done():
				}
			}
		}()
	}
	return events
}

// expectFight waits until so many writes have come that no rollout that ends explains them. The stock manager looks at an object once a second
// at most, and less often when processors are short: what counts is that they come.
func (w *world) expectFight(t testing.TB) {
	t.Helper()
	const within, enough = stockPatience, 20
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	events := w.written(ctx, t)
	for n := range enough {
		select {
		case <-events:
		case <-ctx.Done():
			t.Fatalf("%d writes in %v: the defect is not there, and this test shows nothing", n, within)
		}
	}
}

// expectNoWrites waits until nobody has written for as long as quiet, and fails when that doesn't come about.
func (w *world) expectNoWrites(t testing.TB, quiet time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stockPatience)
	defer cancel()
	counts, events := map[string]int{}, w.written(ctx, t)
	for {
		select {
		case name := <-events:
			counts[name]++
		case <-time.After(quiet):
			return
		case <-ctx.Done():
			t.Fatalf("somebody writes over and over: %v", counts)
		}
	}
}

func (w *world) machineUIDs(t testing.TB) []types.UID {
	list := &clusterv1.MachineList{}
	NewWithT(t).Expect(w.client.List(t.Context(), list, client.InNamespace(w.hcpNS))).To(Succeed())
	var uids []types.UID
	for _, m := range list.Items {
		uids = append(uids, m.UID)
	}
	return uids
}

func TestStockClusterAPIHeals(t *testing.T) {
	for _, upgradeType := range []hyperv1.UpgradeType{hyperv1.UpgradeTypeReplace, hyperv1.UpgradeTypeInPlace} {
		t.Run(fmt.Sprintf("When an operator of before has made %s machines it should end what Cluster API does over and over, and replace none", upgradeType), func(t *testing.T) {
			t.Parallel() // most of it is waiting
			manager := stockManager(t)
			w := newWorld(t)
			w.startStock(t, manager)
			g := NewWithT(t)
			g.Expect(w.client.Create(t.Context(), examplePool(w.ns, func(np *hyperv1.NodePool) {
				np.Spec.Management.UpgradeType, np.Spec.Management.AutoRepair = upgradeType, true
			}))).To(Succeed())
			before := asBefore(t, w.client)
			allReady := func() string { return w.condition(t, hyperv1.NodePoolAllNodesHealthyConditionType) }
			g.Eventually(func(g Gomega) {
				_, err := w.reconciler(before).Reconcile(t.Context(), w.request())
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(allReady()).To(Equal("True/AsExpected"))
				g.Expect(w.condition(t, hyperv1.NodePoolUpdatingVersionConditionType)).To(Equal("False/AsExpected"))
			}, stockPatience, often).Should(Succeed())
			if upgradeType == hyperv1.UpgradeTypeReplace {
				g.Expect(w.deployment(t).Spec.Template.Spec.Version).To(Equal("1.36.3"))
				w.expectFight(t)
			}
			uids := w.machineUIDs(t)

			w.start(t)
			// Cluster API looks at some things every 15 s only.
			w.expectNoWrites(t, 20*time.Second)
			g.Expect(w.machineUIDs(t)).To(Equal(uids))
			sets := &clusterv1.MachineSetList{}
			g.Expect(w.client.List(t.Context(), sets, client.InNamespace(w.hcpNS))).To(Succeed())
			g.Expect(sets.Items).To(HaveLen(1))
			g.Expect(sets.Items[0].Spec.Selector.MatchLabels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "demo-abcde"))
			g.Expect(sets.Items[0].Spec.Template.Spec.Version).To(Equal("1.36.3"))
			g.Expect(w.condition(t, hyperv1.NodePoolUpdatingVersionConditionType)).To(Equal("False/AsExpected"))
			if upgradeType != hyperv1.UpgradeTypeReplace {
				return
			}

			body := []byte(`{"spec":{"nodeLabels":{"example.com/zone":"a"},"release":{"image":"registry/release:1.36.4"}}}`)
			w.upgraded(t)
			g.Expect(w.client.Patch(t.Context(), w.pool(t), client.RawPatch(types.MergePatchType, body))).To(Succeed())
			g.Eventually(func() string { return w.pool(t).Status.Version }, stockPatience, often).Should(Equal("1.36.4"))
			g.Expect(w.deployment(t).Spec.Template.Spec.Version).To(Equal("1.36.4"), "as the older operator spells it, to which one may go back")
			w.expectNoWrites(t, 20*time.Second)
		})
	}
}

// upgraded gives the HostedCluster the version that its pools may go to.
func (w *world) upgraded(t testing.TB) {
	g := NewWithT(t)
	hc := &hyperv1.HostedCluster{}
	g.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "demo"}, hc)).To(Succeed())
	hc.Status.Version.Desired.Version, hc.Status.Version.History[0].Version = "1.36.4", "1.36.4"
	g.Expect(w.client.Status().Update(t.Context(), hc)).To(Succeed())
}

// TestOlderOperator goes back to an operator that knew nothing of Cluster API's webhooks, and on again. A template that differs replaces all machines.
func TestOlderOperator(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	g.Expect(w.client.Create(t.Context(), examplePool(w.ns))).To(Succeed())
	g.Expect(w.settle(t.Context(), w.client)).To(Succeed())
	made := w.deployment(t).Spec.Template
	for _, c := range []client.WithWatch{asBefore(t, w.client), w.client} {
		g.Expect(w.settle(t.Context(), c)).To(Succeed())
		g.Expect(w.deployment(t).Spec.Template.Spec).To(Equal(made.Spec))
	}
}
