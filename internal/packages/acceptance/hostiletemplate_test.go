package acceptance

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/packagestest"
)

// shippedMemory is the memory limit of the operator that is least: that of its own package, as published.
const shippedMemory = 400 << 20

// TestHostileTemplates gives every hostile ObjectTemplate that we know of to a running operator, in one namespace and in the cluster's scope: each is
// refused with a condition, templates of another namespace are kept meanwhile, and it is the same process at the end, within its memory.
func TestHostileTemplates(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	all := packagestest.HostileTemplates()
	source := func(namespace, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "source"}, Data: map[string]string{"value": value}}
	}
	hostile, neighbour := w.home, w.Namespace(t)
	g.Expect(w.Client.Create(t.Context(), source(hostile, strings.Repeat("a", 100)))).To(Succeed())
	g.Expect(w.Client.Create(t.Context(), source(neighbour, "0"))).To(Succeed())
	for _, h := range all {
		ot := &v1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: hostile, Name: h.Name}, Spec: h.Spec("")}
		g.Expect(w.Client.Create(t.Context(), ot)).To(Succeed(), h.Name)
		cot := &v1alpha1.ClusterObjectTemplate{ObjectMeta: metav1.ObjectMeta{Name: hostile + "-" + h.Name}, Spec: h.Spec(hostile)}
		g.Expect(w.Client.Create(t.Context(), cot)).To(Succeed(), h.Name)
		t.Cleanup(func() { // the next operator of these tests would render them all
			_ = w.Client.Delete(context.WithoutCancel(t.Context()), ot)
			_ = w.Client.Delete(context.WithoutCancel(t.Context()), cot)
		})
	}
	o := w.start(t, w.home)
	good := &v1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: neighbour, Name: "good"}, Spec: packagestest.HostileTemplate{
		Template: "{apiVersion: v1, kind: ConfigMap, metadata: {name: made}, data: {value: {{ .config.value | quote }}}}", Key: "data.value",
	}.Spec("")}
	g.Expect(w.Client.Create(t.Context(), good)).To(Succeed())

	refused := func() []string {
		var waiting []string
		check := func(name string, conditions []metav1.Condition, want string) {
			c := meta.FindStatusCondition(conditions, v1alpha1.ConditionTemplateInvalid)
			switch {
			case c == nil:
				waiting = append(waiting, name)
			case c.Status != metav1.ConditionTrue, !strings.Contains(c.Message, want) && !strings.Contains(c.Message, packagestest.TooSlow):
				t.Errorf("%s says %s %s %.300q, want %q", name, c.Status, c.Reason, c.Message, want)
			}
		}
		ots, cots := &v1alpha1.ObjectTemplateList{}, &v1alpha1.ClusterObjectTemplateList{}
		g.Expect(w.Client.List(t.Context(), ots, client.InNamespace(hostile))).To(Succeed())
		g.Expect(w.Client.List(t.Context(), cots)).To(Succeed())
		byName := map[string][]metav1.Condition{}
		for i := range ots.Items {
			byName[ots.Items[i].Name] = ots.Items[i].Status.Conditions
		}
		for i := range cots.Items {
			byName[cots.Items[i].Name] = cots.Items[i].Status.Conditions
		}
		for _, h := range all {
			check(h.Name, byName[h.Name], h.Want)
			check(hostile+"-"+h.Name, byName[hostile+"-"+h.Name], h.Want)
		}
		return waiting
	}

	// The neighbour changes its source again and again until all hostile ones have been looked at.
	var slowest time.Duration
	g.Eventually(func() ([]corev1.ConfigMap, error) {
		list := &corev1.ConfigMapList{}
		err := w.Client.List(t.Context(), list, client.InNamespace(neighbour))
		return list.Items, err
	}, patience).Should(HaveLen(2), "the operator is at work")
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: neighbour, Name: "made"}}
	var waiting []string
	deadline, changes := time.Now().Add(8*time.Minute), 0
	for value := 0; ; value++ {
		if waiting = refused(); len(waiting) == 0 || time.Now().After(deadline) || t.Failed() {
			break
		}
		patch := fmt.Sprintf(`{"data":{"value":"%d"}}`, value)
		g.Expect(w.Client.Patch(t.Context(), source(neighbour, ""), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
		begin := time.Now()
		w.Eventually(t, made, func() error {
			if made.Data["value"] != strconv.Itoa(value) {
				return fmt.Errorf("value is %q, want %d", made.Data["value"], value)
			}
			return nil
		})
		slowest, changes = max(slowest, time.Since(begin)), changes+1
		select {
		case err := <-o.ended:
			t.Fatalf("the operator ended: %v", err)
		default:
		}
	}
	g.Expect(waiting).To(BeEmpty(), "each is refused")
	bytes, seconds := o.used(t)
	t.Logf("%d templates: %.1f s of processor time, at most %d MiB; %d changes of a neighbour, each seen within %s",
		2*len(all), seconds, bytes>>20, changes, slowest)
	g.Expect(bytes).To(BeNumerically("<", packagestest.Shadow*shippedMemory))
	g.Expect(slowest).To(BeNumerically("<", packagestest.Shadow*20*time.Second))

	configMaps := &corev1.ConfigMapList{}
	g.Expect(w.Client.List(t.Context(), configMaps, client.InNamespace(hostile))).To(Succeed())
	g.Expect(configMaps.Items).To(HaveLen(1), "nothing is made of those that are refused")
	g.Expect(o.stop(g)).To(Succeed())
}
