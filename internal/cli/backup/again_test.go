package backup

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/testenv"
)

func TestJudgeAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		to     target
		change func(*world)
		again  bool
	}{
		"When a restore was interrupted it should go on":  {restored(), func(*world) {}, true},
		"When a clone was interrupted it should go on":    {copied(), func(*world) {}, true},
		"When nothing is left of it it should be refused": {restored(), func(w *world) { w.secrets[0] = nil }, false},
		"When it was made of another backup it should be refused": {restored(), func(w *world) {
			w.cluster.Spec.Etcd.Managed.Storage.RestoreSnapshotURL = []string{"s3://backups/demo/2.db.enc"}
		}, false},
		"When it was made of none it should be refused":             {restored(), func(w *world) { w.cluster.Spec.Etcd.Managed.Storage.RestoreSnapshotURL = nil }, false},
		"When its etcd is the user's it should be refused":          {restored(), func(w *world) { w.cluster.Spec.Etcd.Managed = nil }, false},
		"When it is being deleted it should be refused":             {restored(), func(w *world) { w.cluster.DeletionTimestamp = ptr.To(metav1.Now()) }, false},
		"When it is another cluster it should be refused":           {restored(), func(w *world) { w.cluster.Spec.InfraID = "other" }, false},
		"When it is a clone and none is wanted it should refuse":    {restored(), func(w *world) { w.cluster.Annotations[backups.CloneOfAnnotation] = "clusters/demo" }, false},
		"When it is no clone and one is wanted it should refuse":    {copied(), func(w *world) { delete(w.cluster.Annotations, backups.CloneOfAnnotation) }, false},
		"When the Secret is another cluster's it should be refused": {restored(), func(w *world) { w.namespace = namespaceOf("clusters/other") }, false},
		"When it is being restored in place that should be left alone": {restored(), func(w *world) {
			w.etcd = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{backups.RecoveryAnnotation: "{}"}}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), demo()
			m, err := build(s.objects, tc.to)
			g.Expect(err).NotTo(HaveOccurred())
			w := world{cluster: m.cluster.DeepCopy(), namespace: namespaceOf(tc.to.namespace + "/" + tc.to.name), secrets: make([]*corev1.Secret, len(m.secrets))}
			w.secrets[0] = &corev1.Secret{}
			if len(w.secrets) > 1 { // an authority may have been replaced meanwhile
				w.secrets[1] = &corev1.Secret{}
			}
			tc.change(&w)
			r := judge(s, w, m, tc.to)
			g.Expect(r.again).To(Equal(tc.again))
			if tc.again {
				g.Expect(r.refusals).To(BeEmpty())
				g.Expect(strings.Join(r.lines, "\n")).To(ContainSubstring("nothing is restored again"))
				return
			}
			g.Expect(r.refusals).To(ContainElement(ContainSubstring("exists: destroy it first")))
		})
	}
}

// TestFinish clears up in a hosted cluster whose API the management cluster's stands for, as a run does that was interrupted and another one after it.
func TestFinish(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	crds, err := config.CRDs(config.TechPreviewSet)
	g.Expect(err).NotTo(HaveOccurred())
	env.Install(t, crds...)
	c := env.Client(t, connect.Scheme())
	to := copied()
	to.namespace = env.Namespace(t)
	s := demo()
	m, err := build(s.objects, to)
	g.Expect(err).NotTo(HaveOccurred())
	create := func(o client.Object) { g.Expect(c.Create(t.Context(), o)).To(Succeed()) }
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	create(node("of-the-backup"))
	// Times have whole seconds.
	g.Eventually(func() time.Time {
		hc := m.cluster.DeepCopy()
		g.Expect(client.IgnoreNotFound(c.Delete(t.Context(), hc))).To(Succeed())
		hc.ResourceVersion = ""
		create(hc)
		return hc.CreationTimestamp.Time
	}).Should(BeTemporally(">", created(t, c, node("of-the-backup"))))
	create(node("joined-since"))
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "etcd"}}
	etcd := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: m.controlPlane(), Name: names.Etcd}, Spec: appsv1.StatefulSetSpec{Selector: app,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app.MatchLabels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: "etcd:1"}}}}}}
	for _, o := range []client.Object{m.namespace.DeepCopy(), m.secrets[0].DeepCopy(), etcd} {
		create(o)
	}
	etcd.Status.ObservedGeneration = etcd.Generation
	g.Expect(c.Status().Update(t.Context(), etcd)).To(Succeed())

	run := func(ctx context.Context) error {
		return finish(ctx, c, connect.Flags{}, m, to, progress.New(io.Discard, nil))
	}
	g.Expect(run(t.Context())).To(MatchError(ContainSubstring("has no kubeconfig yet")))
	access := &corev1.Secret{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(m.secrets[0]), access)).To(Succeed(), "When it breaks off the Secret should be there, by which it is gone on with")
	g.Expect(access.Data).To(BeEmpty(), "When etcd needs the keys no more they should go, whatever becomes of the rest")

	create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: to.namespace, Name: "k"}, Data: map[string][]byte{"kubeconfig": env.Kubeconfig(t)}})
	hc := &hyperv1.HostedCluster{}
	g.Expect(c.Get(t.Context(), m.key(), hc)).To(Succeed())
	hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: "k"}
	g.Expect(c.Status().Update(t.Context(), hc)).To(Succeed())
	for range 2 { // the second time there is nothing to do
		g.Expect(run(t.Context())).To(Succeed())
		nodes := &corev1.NodeList{}
		g.Expect(c.List(t.Context(), nodes)).To(Succeed())
		g.Expect(nodes.Items).To(ConsistOf(HaveField("Name", "joined-since")), "When a Node has joined since it should stay, whatever the caller's clock says")
		g.Expect(client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(access), access))).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(access), access)).NotTo(Succeed(), "When it has ended the Secret should be gone")
	}
}

// created is when an object was.
func created(t *testing.T, c client.Client, o client.Object) time.Time {
	t.Helper()
	NewWithT(t).Expect(c.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(Succeed())
	return o.GetCreationTimestamp().Time
}
