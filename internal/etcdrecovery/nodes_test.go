package etcdrecovery

import (
	"bytes"
	"io"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// lostNodes is a control plane whose members etcd-0 and etcd-2 are on nodes a and c, of which both are lost, and etcd-1 on node b. kube-apiserver is on node c.
func lostNodes(t *testing.T, change ...func(client.Object)) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	NewWithT(t).Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
	hc, hcp := exampleCluster("ns")
	node := func(name string, ready corev1.ConditionStatus) client.Object {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	pod := func(app, name, node string) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": app}}, Spec: corev1.PodSpec{NodeName: node}}
	}
	objs := []client.Object{hc, hcp,
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "etcd"}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: apiServer}},
		node("a", corev1.ConditionUnknown), node("b", corev1.ConditionTrue), node("c", corev1.ConditionFalse),
		pod("etcd", "etcd-0", "a"), pod("etcd", "etcd-1", "b"), pod("etcd", "etcd-2", "c"), pod(apiServer, "kube-apiserver-x", "c"),
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data-etcd-1"}},
	}
	var kept []client.Object
	for _, o := range objs {
		for _, c := range change {
			c(o)
		}
		if o.GetLabels()["gone"] == "" {
			kept = append(kept, o)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(kept...).WithStatusSubresource(hc, hcp).Build()
}

func ofLostNodes(c client.Client, out io.Writer) Quorum {
	return Quorum{Client: c, Cluster: client.ObjectKey{Namespace: "ns", Name: "demo"}, Namespace: "ns", Name: "etcd", From: "etcd-1", Log: out, Poll: time.Millisecond, Patience: 100 * time.Millisecond}
}

func TestLostNodes(t *testing.T) {
	const wayOut = "Once you know that the machines are off, run `kubectl delete node a c`, or `kubectl taint node a c node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`"
	t.Run("When nodes of members don't answer nothing should be stopped, and the way out be named", func(t *testing.T) {
		g, c := NewWithT(t), lostNodes(t)
		err := ofLostNodes(c, io.Discard).Run(t.Context())
		g.Expect(err).To(MatchError(ErrQuorum))
		g.Expect(err).To(MatchError(ContainSubstring("pods can't be stopped: pod etcd-0 on node a, pod etcd-2 on node c; not Ready: a, c. " + wayOut)))
		hc, set := &hyperv1.HostedCluster{}, &appsv1.StatefulSet{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "demo"}, hc)).To(Succeed())
		g.Expect(hc.Spec.PausedUntil).To(BeNil())
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "etcd"}, set)).To(Succeed())
		g.Expect(set.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		g.Expect(set.Annotations).To(BeEmpty())
	})
	t.Run("When the data is replaced API servers should have to stop, too", func(t *testing.T) {
		q := ofLostNodes(lostNodes(t), io.Discard)
		q.Snapshot = &Snapshot{URL: "s3://b/1.db.enc"}
		NewWithT(t).Expect(q.canEnd(t.Context(), &note{Snapshot: "s3://b/1.db.enc"})).To(MatchError(ContainSubstring("pod etcd-2 on node c, pod kube-apiserver-x on node c; not Ready: a, c.")))
	})
	for name, change := range map[string]func(client.Object){
		"When somebody has said that the machines are off it should begin": func(o client.Object) {
			if n, ok := o.(*corev1.Node); ok {
				n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
			}
		},
		"When the nodes were deleted it should begin": func(o client.Object) {
			if n, ok := o.(*corev1.Node); ok {
				n.Labels = map[string]string{"gone": "yes"}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(ofLostNodes(lostNodes(t, change), io.Discard).canEnd(t.Context(), &note{})).To(Succeed())
		})
	}
	t.Run("When nodes are lost after it has begun it should name what it waits for", func(t *testing.T) {
		g, out := NewWithT(t), &bytes.Buffer{}
		c := lostNodes(t, func(o client.Object) {
			switch o := o.(type) {
			case *appsv1.StatefulSet:
				o.Annotations = map[string]string{noteAnnotation: `{"from":"etcd-1","replicas":3,"paused":true}`}
			case *hyperv1.HostedCluster:
				o.Spec.PausedUntil = ptr.To("true")
			case *hyperv1.HostedControlPlane:
				o.Spec.PausedUntil = ptr.To("true")
			}
		})
		hc, hcp := &hyperv1.HostedCluster{}, &hyperv1.HostedControlPlane{}
		key := client.ObjectKey{Namespace: "ns", Name: "demo"}
		g.Expect(c.Get(t.Context(), key, hc)).To(Succeed())
		g.Expect(c.Get(t.Context(), key, hcp)).To(Succeed())
		tellPause(t.Context(), c, hc, hcp)
		err := ofLostNodes(c, out).Run(t.Context())
		const names = "still there: pod etcd-0 on node a, pod etcd-1 on node b, pod etcd-2 on node c; not Ready: a, c. " + wayOut
		g.Expect(err).To(MatchError(ContainSubstring("waiting for members to stop")))
		g.Expect(err).To(MatchError(ContainSubstring(names)))
		g.Expect(err).To(MatchError(ContainSubstring("run the command again to continue")))
		g.Expect(out.String()).To(ContainSubstring(names), "not only when time is up")
	})
}
