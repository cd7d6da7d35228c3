package versions

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { Publish(ctx, c, ns); close(ended) }()
		t.Cleanup(func() { stop(); <-ended })
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
}
