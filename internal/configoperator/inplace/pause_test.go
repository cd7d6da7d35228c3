package inplace

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/testenv"
)

// controlPlane makes the pool's HostedControlPlane.
func (p *pool) controlPlane(t testing.TB, mutate ...func(*hyperv1.HostedControlPlane)) *hyperv1.HostedControlPlane {
	t.Helper()
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: p.set.Namespace, Name: "demo"}}
	hcp.Spec.IssuerURL, hcp.Spec.PullSecret.Name, hcp.Spec.Platform.Type, hcp.Spec.InfraID = "https://kubernetes.default.svc", "pull-secret", hyperv1.NonePlatform, "demo"
	hcp.Spec.ReleaseImage = "quay.io/ocp:4.20.3"
	for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		hcp.Spec.Services = append(hcp.Spec.Services, hyperv1.ServicePublishingStrategyMapping{
			Service: service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}})
	}
	hcp.Spec.Etcd.ManagementType = hyperv1.Managed
	hcp.Spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}
	hcp.Spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}
	hcp.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}}
	for _, m := range mutate {
		m(hcp)
	}
	if err := p.client.Create(t.Context(), hcp); err != nil {
		t.Fatal(err)
	}
	return hcp
}

// pauses are the ways in which a pool is paused. Each returns how to let it go on, and after which time a pass with nothing under way is to be repeated.
var pauses = map[string]func(t testing.TB, p *pool) (resume func(), after time.Duration){
	"its MachineSet is paused": func(t testing.TB, p *pool) (func(), time.Duration) {
		set := func(value *string) {
			if err := p.client.Get(t.Context(), client.ObjectKeyFromObject(p.set), p.set); err != nil {
				t.Fatal(err)
			}
			before := p.set.DeepCopy()
			delete(p.set.Annotations, clusterv1.PausedAnnotation)
			if value != nil {
				p.set.Annotations[clusterv1.PausedAnnotation] = *value
			}
			if err := p.client.Patch(t.Context(), p.set, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
		}
		set(ptr.To("true"))
		return func() { set(nil) }, 0
	},
	"the control plane is paused until later": func(t testing.TB, p *pool) (func(), time.Duration) {
		hcp := p.controlPlane(t, func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.PausedUntil = ptr.To("2026-11-21T12:30:00Z") })
		return func() {
			hcp.Spec.PausedUntil = nil
			if err := p.client.Update(t.Context(), hcp); err != nil {
				t.Fatal(err)
			}
		}, 30 * time.Minute
	},
}

func TestPause(t *testing.T) {
	reconcile := func(t *testing.T, p *pool) time.Duration {
		t.Helper()
		result, err := p.reconciler(p.client).Reconcile(t.Context(), p.request())
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return result.RequeueAfter
	}
	for name, pause := range pauses {
		t.Run("When "+name+" before anything began it should begin nothing, and go on afterwards", func(t *testing.T) {
			g := NewWithT(t)
			p := newPool(t)
			resume, after := pause(t, p)
			g.Expect(reconcile(t, p)).To(Equal(after))
			for i := range p.nodes {
				g.Expect(p.node(t, i).Annotations).NotTo(HaveKey(desiredConfig))
			}
			g.Expect(p.annotations(t)[hyperv1.NodePoolUpgradeInProgressTrueAnnotation]).To(HavePrefix("Upgrade in progress. Total Nodes: 2. Upgraded: 0; no other node is begun: "))
			testenv.ExpectQuiet(t, p.client, func(c client.WithWatch) error { return p.pass(t, c) })
			resume()
			g.Expect(reconcile(t, p)).To(Equal(poll))
			g.Expect(p.node(t, 0).Annotations[desiredConfig]).To(Equal("v2"))
		})
		t.Run("When "+name+" while a node is under way it should let that one finish and begin no other", func(t *testing.T) {
			g := NewWithT(t)
			p := newPool(t)
			g.Expect(reconcile(t, p)).To(Equal(poll))
			resume, after := pause(t, p)
			g.Expect(p.client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(p.set.Name), Name: daemonPrefix + p.nodes[0]}}, client.GracePeriodSeconds(0))).To(Succeed())
			g.Expect(reconcile(t, p)).To(Equal(poll))
			g.Expect(p.client.Get(t.Context(), client.ObjectKey{Namespace: namespaceOf(p.set.Name), Name: daemonPrefix + p.nodes[0]}, &corev1.Pod{})).To(Succeed(), "it is still at work")
			p.says(t, 0, map[string]string{currentConfig: "v2", stateAnnotation: stateDone})
			g.Expect(reconcile(t, p)).To(Equal(after))
			g.Expect(p.node(t, 1).Annotations).NotTo(HaveKey(desiredConfig))
			resume()
			g.Expect(reconcile(t, p)).To(Equal(poll))
			g.Expect(p.node(t, 1).Annotations[desiredConfig]).To(Equal("v2"))
			p.finish(t)
		})
	}
}

func TestPauseOfDrains(t *testing.T) {
	for name, pause := range pauses {
		t.Run("When "+name+" it should drain nodes under way and no others, and let pods in again everywhere", func(t *testing.T) {
			g := NewWithT(t)
			p := newPool(t)
			drain := func() time.Duration {
				result, err := p.drainer(p.client).Reconcile(t.Context(), p.request())
				g.Expect(err).NotTo(HaveOccurred())
				return result.RequeueAfter
			}
			resume, after := pause(t, p)
			g.Expect(drain()).To(Equal(after))
			p.says(t, 1, map[string]string{desiredDrain: "drain-v2"})
			g.Expect(drain()).To(Equal(after))
			g.Expect(p.node(t, 1).Spec.Unschedulable).To(BeFalse(), "nobody told it anything")
			g.Expect(p.node(t, 1).Annotations).NotTo(HaveKey(lastAppliedDrain))

			p.says(t, 0, map[string]string{desiredConfig: "v2"})
			g.Expect(drain()).To(Equal(drainPoll), "it may ask at any time")
			p.says(t, 0, map[string]string{desiredDrain: "drain-v2"})
			g.Expect(drain()).To(Equal(drainPoll))
			g.Expect(p.node(t, 0).Spec.Unschedulable).To(BeTrue())
			g.Expect(p.node(t, 0).Annotations[lastAppliedDrain]).To(Equal("drain-v2"))
			p.says(t, 0, map[string]string{currentConfig: "v2", stateAnnotation: stateDone, desiredDrain: "uncordon-v2"})
			g.Expect(drain()).To(Equal(after))
			g.Expect(p.node(t, 0).Spec.Unschedulable).To(BeFalse())

			resume()
			g.Expect(drain()).To(Equal(drainPoll))
			g.Expect(p.node(t, 1).Spec.Unschedulable).To(BeTrue())
		})
	}
}

func TestMatters(t *testing.T) {
	set := func(annotations map[string]string) *clusterv1.MachineSet {
		return &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	}
	const target = hyperv1.NodePoolTargetConfigVersionAnnotation
	working, held := set(map[string]string{target: "v2"}), set(map[string]string{target: "v2", clusterv1.PausedAnnotation: ""})
	for name, tc := range map[string]struct {
		before, after *clusterv1.MachineSet
		want          bool
	}{
		"When a MachineSet is paused it should matter":                      {working, held, true},
		"When a MachineSet is let go on it should matter":                   {held, working, true},
		"When nothing of it changes it should not matter":                   {held, held, false},
		"When its machines are replaced its pause should not matter either": {set(nil), set(map[string]string{clusterv1.PausedAnnotation: ""}), false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Matters().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after})).To(Equal(tc.want))
		})
	}
}

func TestSetsOf(t *testing.T) {
	t.Run("When a control plane is paused or goes on it should be a pass for each MachineSet beside it that is changed in place", func(t *testing.T) {
		g := NewWithT(t)
		p := newPool(t)
		replaced := p.set.DeepCopy()
		replaced.ObjectMeta = metav1.ObjectMeta{Namespace: p.set.Namespace, Name: "replaced"}
		g.Expect(p.client.Create(t.Context(), replaced)).To(Succeed())
		newPool(t) // in another namespace
		g.Expect(SetsOf(p.client)(t.Context(), p.controlPlane(t))).To(ConsistOf(p.request()))
	})
}
