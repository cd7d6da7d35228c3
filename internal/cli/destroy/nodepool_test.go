package destroy

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/testenv"
)

func TestDestroyNodePool(t *testing.T) {
	t.Run("When a NodePool is destroyed it should say what holds it, and end when it is gone", func(t *testing.T) {
		g := NewWithT(t)
		env := testenv.Start(t)
		c, ctx := env.Client(t, connect.Scheme()), t.Context()
		o := NewNodePoolOptions()
		o.Name, o.Namespace = "workers", env.Namespace(t)
		out := &bytes.Buffer{}
		g.Expect(nodePool(ctx, o, c, out)).To(MatchError(ErrNotFound))

		pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: "workers", Finalizers: []string{hyperv1.NodePoolFinalizer}}, Spec: hyperv1.NodePoolSpec{
			ClusterName: "demo", Release: hyperv1.Release{Image: "registry.example.com/release:1"}, Platform: hyperv1.NodePoolPlatform{Type: hyperv1.LocalPlatform},
			Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace}, Arch: hyperv1.ArchitectureAMD64,
		}}
		g.Expect(c.Create(ctx, pool)).To(Succeed())
		o.Wait = false
		g.Expect(nodePool(ctx, o, c, out)).To(Succeed())
		g.Expect(out.String()).To(ContainSubstring("deleted NodePool"))
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(pool), pool)).To(Succeed())
		g.Expect(pool.DeletionTimestamp).NotTo(BeNil())

		pool.Status.Conditions = []hyperv1.NodePoolCondition{{Type: hyperv1.NodePoolReadyConditionType, Status: corev1.ConditionFalse, Reason: "Deleting",
			Message: "there are still Machines: workers-1", LastTransitionTime: metav1.Now(), ObservedGeneration: pool.Generation}}
		g.Expect(c.Status().Update(ctx, pool)).To(Succeed())
		o.Wait, o.Timeout = true, 500*time.Millisecond
		g.Eventually(func() error { // a time that is over before somebody has looked says nothing of machines
			o.Timeout *= 2
			return nodePool(ctx, o, c, out)
		}).WithTimeout(time.Minute).Should(MatchError(And(ContainSubstring("there are still Machines: workers-1"), ContainSubstring("run it again"))))

		done, waiting := make(chan error, 1), gbytes.NewBuffer()
		o.Timeout = time.Minute
		go func() { done <- nodePool(ctx, o, c, waiting) }()
		// It has to have seen the NodePool: one that goes before is not found, which is an error.
		g.Eventually(waiting, 20*time.Second).Should(gbytes.Say("there are still Machines"))
		g.Expect(c.Patch(ctx, pool, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		g.Eventually(done, 20*time.Second).Should(Receive(Succeed()))
	})
}
