package hostedcluster

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/contract/capiproxy"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/migration"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/testenv"
)

// TestMigrationMiddle is about what users do to a hosted cluster while it is moved.
func TestMigrationMiddle(t *testing.T) {
	m := newMovable(t, 2)
	g, ctx := NewWithT(t), t.Context()
	standard, pods := m.state(t, translate.Standard), m.pods(t)
	hcp := func(t *testing.T) *hyperv1.HostedControlPlane {
		t.Helper()
		out := &hyperv1.HostedControlPlane{}
		NewWithT(t).Expect(m.client.Get(ctx, client.ObjectKey{Namespace: m.hcp, Name: "demo"}, out)).To(Succeed())
		return out
	}
	was := hcp(t).Spec.ReleaseImage
	g.Expect(m.migrate(ctx, m.mover(before(m.client, migration.Verify)), hyperv1.PrivateCAPIMigrateAnnotation)).To(MatchError(testenv.ErrFault))
	t.Run("When an upgrade is asked for in the middle both operators should leave it alone", func(t *testing.T) {
		g := NewWithT(t)
		body := fmt.Appendf(nil, `{"spec":{"release":{"image":%q}}}`, m.next)
		g.Expect(m.client.Patch(ctx, m.hostedCluster(), client.RawPatch(types.MergePatchType, body))).To(Succeed())
		for _, pass := range []func(c client.WithWatch) error{
			func(c client.WithWatch) error { m.others = c; return m.legacyPass(ctx) },
			func(c client.WithWatch) error { return m.privatePass(ctx, c) },
		} {
			g.Expect(pass(m.client)).To(Succeed()) // the observed generation of a condition may be written
		}
		testenv.ExpectQuiet(t, m.client, func(c client.WithWatch) error { m.others = c; return m.legacyPass(ctx) })
		testenv.ExpectQuiet(t, m.through, func(c client.WithWatch) error { return m.privatePass(ctx, c) })
		m.others = m.client
		g.Expect(hcp(t).Spec.ReleaseImage).To(Equal(was))
	})
	var template *appsv1.Deployment
	operator := func(t *testing.T) *appsv1.Deployment {
		t.Helper()
		d := &appsv1.Deployment{}
		NewWithT(t).Expect(m.client.Get(ctx, client.ObjectKey{Namespace: m.hcp, Name: names.ControlPlaneOperator}, d)).To(Succeed())
		return d
	}
	t.Run("When its control-plane-operator starts again it should know private types from the first moment", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(m.migrate(ctx, m.mover(before(m.client, migration.Unpause)), "")).To(MatchError(testenv.ErrFault))
		template = operator(t)
		g.Expect(*template.Spec.Replicas).To(BeEquivalentTo(1))
		g.Expect(template.Spec.Template.Spec.Containers[0].Env).To(ContainElement(HaveField("Name", capiproxy.EnvImage)))
	})
	t.Run("When it is deleted after the commit it should be moved to the end first", func(t *testing.T) {
		g := NewWithT(t)
		hc, err := m.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.client.Delete(ctx, hc)).To(Succeed())
		g.Expect(m.migrate(ctx, m.mover(m.client), "")).To(Succeed())
		m.expectWhole(t, translate.Private, standard, pods, "Completed")
		g.Expect(operator(t).Spec.Template).To(Equal(template.Spec.Template), "its pod was replaced a second time")
	})
	t.Run("When the move is over the deletion should go on with the operator for private types alone", func(t *testing.T) {
		g := NewWithT(t)
		testenv.ExpectQuiet(t, m.client, func(c client.WithWatch) error { m.others = c; return m.legacyPass(ctx) })
		m.others = m.client
		deleting := func() bool {
			u := unstructuredOf(translate.Private, "v1beta2", "Cluster")
			err := m.client.Get(ctx, client.ObjectKey{Namespace: m.hcp, Name: "demo-abcde"}, u)
			return err == nil && u.GetDeletionTimestamp() != nil
		}
		g.Eventually(func() bool {
			// Its NodePools go first, which nobody looks after here.
			_ = m.client.Delete(ctx, &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: "workers"}})
			g.Expect(m.privatePass(ctx, m.through)).To(Succeed())
			return deleting()
		}, patience, often).Should(BeTrue())
	})
}

// TestMigrationCorrected is about programs that don't start after the commit.
func TestMigrationCorrected(t *testing.T) {
	m := newMovable(t, 1)
	g, ctx := NewWithT(t), t.Context()
	g.Expect(m.migrate(ctx, m.mover(before(m.client, migration.Unpause)), hyperv1.PrivateCAPIMigrateAnnotation)).To(MatchError(testenv.ErrFault))
	operator, key := &appsv1.Deployment{}, client.ObjectKey{Namespace: m.hcp, Name: names.ControlPlaneOperator}
	g.Expect(m.client.Get(ctx, key, operator)).To(Succeed())
	operator.Status.AvailableReplicas, operator.Status.ReadyReplicas = 0, 0
	g.Expect(m.client.Status().Update(ctx, operator)).To(Succeed())
	pass := func() error {
		_, err := m.mover(m.client).Reconcile(ctx, m.request("demo"))
		return err
	}
	t.Run("When the HostedCluster is corrected while its programs don't start they should be deployed as it says", func(t *testing.T) {
		g := NewWithT(t)
		const image = "registry.example.com/cpo:corrected"
		g.Expect(m.client.Patch(ctx, m.hostedCluster(), patch.Annotation(hyperv1.ControlPlaneOperatorImageAnnotation, ptr.To(image)))).To(Succeed())
		g.Expect(pass()).To(Succeed())
		g.Expect(m.message(ctx, "demo", hyperv1.PrivateCAPIMigrationProgressing)).To(HaveSuffix("waiting for " + names.ControlPlaneOperator))
		g.Expect(m.client.Get(ctx, key, operator)).To(Succeed())
		g.Expect(operator.Spec.Template.Spec.Containers[0].Image).To(Equal(image))
	})
	t.Run("When nothing is corrected nothing should be written", func(t *testing.T) {
		through := m.through
		testenv.ExpectQuiet(t, through, func(c client.WithWatch) error { m.through = c; return pass() })
		m.through = through
		testenv.ExpectQuiet(t, m.client, func(c client.WithWatch) error {
			_, err := m.mover(c).Reconcile(ctx, m.request("demo"))
			return err
		})
	})
	t.Run("When they start the move should go on to its end", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(m.migrate(ctx, m.mover(m.client), "")).To(Succeed())
		g.Expect(m.condition(ctx, "demo", hyperv1.PrivateCAPIMigrationProgressing)()).To(Equal("False/Completed"))
	})
}
