package versions

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// patience is for an API server on a busy machine, and a retry.
const patience = 2 * time.Minute

func TestPublish(t *testing.T) {
	t.Run("When the operator starts it should say which versions it hosts", func(t *testing.T) {
		g := NewWithT(t)
		env := testenv.Start(t)
		scheme := runtime.NewScheme()
		g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
		c, ns := env.Client(t, scheme), env.Namespace(t)
		publish(t, c, ns)
		ctx := t.Context()
		cm := &corev1.ConfigMap{}
		g.Eventually(func() error { return c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "supported-versions"}, cm) }).WithTimeout(patience).Should(Succeed())
		g.Expect(cm.Labels).To(HaveKeyWithValue("hypershift.openshift.io/supported-versions", "true"))
		g.Expect(cm.Data["supported-versions"]).To(HavePrefix(`{"versions":["5.1","5.0","4.23",`))
		g.Expect(cm.Data["supported-versions"]).To(HaveSuffix(`"1.36","1.35","1.34"]}`))
		g.Expect(cm.Data).To(HaveKey("server-version"))

		// Somebody deletes it, and then changes it: commands read it, and don't wait for an hour.
		is := func(g Gomega) {
			now := &corev1.ConfigMap{}
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(cm), now)).To(Succeed())
			g.Expect(now.Data).To(Equal(cm.Data))
		}
		g.Expect(c.Delete(ctx, cm)).To(Succeed())
		g.Eventually(is).WithTimeout(patience).Should(Succeed())
		g.Expect(c.Patch(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: cm.Name}}, client.RawPatch(types.MergePatchType, []byte(`{"data":{"supported-versions":"{}"}}`)))).To(Succeed())
		g.Eventually(is).WithTimeout(patience).Should(Succeed())
	})

	t.Run("When it is deleted at the moment in which it was written it should be there again", func(t *testing.T) {
		g := NewWithT(t)
		env := testenv.Start(t)
		scheme := runtime.NewScheme()
		g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
		c, ns := env.Client(t, scheme), env.Namespace(t)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "supported-versions"}}
		var writes atomic.Int32
		deleted := interceptor.NewClient(c, interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			err := c.Apply(ctx, obj, opts...)
			if writes.Add(1) == 1 && err == nil {
				return c.Delete(ctx, cm)
			}
			return err
		}})
		publish(t, deleted, ns)
		g.Eventually(writes.Load).WithTimeout(patience).Should(BeEquivalentTo(2))
		g.Eventually(func() error { return c.Get(t.Context(), client.ObjectKeyFromObject(cm), cm) }).WithTimeout(patience).Should(Succeed())
	})
}

// publish runs Publish until the test ends; what it says is the only reason that a failure would have.
func publish(t *testing.T, c client.WithWatch, ns string) {
	ctx, stop := context.WithCancel(ctrl.LoggerInto(t.Context(), testr.New(t)))
	ended := make(chan struct{})
	go func() { Publish(ctx, c, ns); close(ended) }()
	t.Cleanup(func() { stop(); <-ended })
}
