package backup

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/testenv"
	"hcp.internal/platform/internal/why"
)

// restoredNote is where a restore in place is noted whose command has not ended.
const restoredNote = "etcd.hypershift.openshift.io/restored-in-place"

// TestRunInPlaceAgain runs the command again after the data came.
func TestRunInPlaceAgain(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	crds, err := config.CRDs(config.TechPreviewSet)
	g.Expect(err).NotTo(HaveOccurred())
	env.Install(t, crds...)
	c := env.Client(t, connect.Scheme())
	to := restored()
	to.namespace = env.Namespace(t)
	read := demo()
	hc := read.objects.HostedCluster.DeepCopy()
	hc.Namespace, hc.UID, hc.ResourceVersion, hc.Finalizers = to.namespace, "", "", nil
	g.Expect(c.Create(t.Context(), hc)).To(Succeed())
	namespace := names.NamespaceOf(hc)
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app.MatchLabels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: names.ControlPlaneOperator, Image: "operators:1"}}}}
	etcd := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.Etcd, Annotations: map[string]string{restoredNote: "2026-01-02T03:04:05Z " + to.url}},
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3), Selector: app, Template: template}}
	access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: backups.Secret}} // left by the command that was killed
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, etcd, access,
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.ControlPlaneOperator}, Spec: appsv1.DeploymentSpec{Selector: app, Template: template}}} {
		g.Expect(c.Create(t.Context(), o)).To(Succeed())
	}
	generation := etcd.Generation
	again := func(ctx context.Context, wait bool) (string, error) {
		r, out := &restoring{inPlace: true, yes: true, wait: wait, timeout: time.Minute}, &strings.Builder{}
		err := r.runInPlace(ctx, out, c, opened{data: to.access}, read, to)
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(hc), hc)).To(Succeed())
		g.Expect(hc.Spec.PausedUntil).To(BeNil())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(etcd), etcd)).To(Succeed())
		g.Expect(etcd.Generation).To(Equal(generation), "members should run on")
		for _, o := range []client.Object{&corev1.Secret{}, &networkingv1.NetworkPolicy{}} {
			left := c.Get(t.Context(), client.ObjectKeyFromObject(access), o)
			g.Expect(apierrors.IsNotFound(left)).To(BeTrue(), "%T %s should go: %v", o, access.Name, left)
		}
		return out.String(), err
	}

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	out, err := again(ctx, true)
	g.Expect(err).To(MatchError(context.DeadlineExceeded), "When it is killed as it waits it should have restored nothing")
	g.Expect(out).To(ContainSubstring("nothing is replaced again"))
	g.Expect(etcd.Annotations).To(HaveKey(restoredNote), "When it was killed it should restore nothing the next time either")

	for _, stage := range why.Stages {
		hc.Status.Conditions = append(hc.Status.Conditions, metav1.Condition{Type: stage, Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now(), ObservedGeneration: hc.Generation})
	}
	hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: "k"}
	hc.Status.Version = &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Version: "1.36.3", Image: "i"},
		History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "1.36.3", Image: "i", StartedTime: metav1.Now(), CompletionTime: ptr.To(metav1.Now())}}}
	g.Expect(c.Status().Update(t.Context(), hc)).To(Succeed())
	_, err = again(t.Context(), true)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(etcd.Annotations).NotTo(HaveKey(restoredNote), "When it has ended the URL should restore again")

	etcd.Annotations = map[string]string{restoredNote: "2026-01-02T03:04:05Z " + to.url}
	g.Expect(c.Update(t.Context(), etcd)).To(Succeed())
	_, err = again(t.Context(), false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(etcd.Annotations).NotTo(HaveKey(restoredNote), "When nobody wants to wait it should end at once")
}
