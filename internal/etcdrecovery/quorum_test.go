package etcdrecovery

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/testenv"
)

func TestCheckQuorum(t *testing.T) {
	claims := []string{"data-etcd-0", "data-etcd-1", "data-etcd-2", "data-etcd-events-0"}
	ready, down := Pod{Ready: true}, Pod{Down: true, Restarts: 9}
	for name, c := range map[string]struct {
		replicas int32
		from     string
		begun    *note
		pods     []Pod
		claims   []string
		want     string
	}{
		"When two of three are lost the third should go on":              {replicas: 3, from: "etcd-1", pods: []Pod{down, ready, down}, claims: claims},
		"When none is ready any may go on that has its volume":           {replicas: 3, from: "etcd-2", pods: []Pod{down, down, down}, claims: claims[2:]},
		"When a quorum is there nothing should be done":                  {replicas: 3, from: "etcd-1", pods: []Pod{ready, ready, down}, claims: claims, want: "2 of 3 members are ready, which is a quorum"},
		"When there is one member it should say what to do":              {replicas: 1, from: "etcd-0", claims: claims, want: "restore a backup"},
		"When no member is named it should name those with a volume":     {replicas: 3, claims: claims[:2], want: "name the member whose data to use: etcd-0, etcd-1"},
		"When the member is another's it should refuse":                  {replicas: 3, from: "etcd-events-0", claims: claims, want: "name the member whose data to use"},
		"When the member's volume is gone it should name others":         {replicas: 3, from: "etcd-0", claims: claims[1:], want: "etcd-0 has no volume any more: name another with --from: etcd-1, etcd-2"},
		"When it was begun it should go on":                              {replicas: 0, from: "etcd-1", begun: &note{From: "etcd-1", Replicas: 3}},
		"When it was begun from another it should not mix both":          {replicas: 0, from: "etcd-2", begun: &note{From: "etcd-1"}, want: "continue it with --from etcd-1"},
		"When all members of a started recovery are ready it should end": {replicas: 3, from: "etcd-1", begun: &note{From: "etcd-1", Replicas: 3, Alone: true}, pods: []Pod{ready, ready, ready}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := checkQuorum("etcd", c.replicas, c.from, c.begun, c.pods, c.claims)
			if c.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ErrQuorum))
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}

func TestAlonePod(t *testing.T) {
	g := NewWithT(t)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "etcd"}}
	set.Spec.Template.Labels = map[string]string{"app": "etcd"}
	set.Spec.Template.Spec = corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "reset-member"}},
		Containers: []corev1.Container{
			{Name: "helper"},
			{Name: "etcd", Image: "etcd:1", LivenessProbe: &corev1.Probe{}, VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/etcd"}, {Name: "data", MountPath: "/var/lib"}}},
		},
		Tolerations: []corev1.Toleration{{Operator: "Exists"}}, Volumes: []corev1.Volume{{Name: "config"}},
	}
	before := set.DeepCopy()
	pod := alonePod(set, "etcd-1")
	g.Expect(set).To(Equal(before), "the StatefulSet that was read stays as it is")
	g.Expect(pod.Labels).To(BeEmpty(), "no Service should lead to it")
	g.Expect(pod.Spec.InitContainers).To(BeEmpty())
	g.Expect(pod.Spec.Containers).To(HaveLen(1))
	g.Expect(pod.Spec.Containers[0].Command).To(ContainElements("etcd", "--force-new-cluster", "--data-dir=/var/lib/data"))
	g.Expect(pod.Spec.Containers[0].LivenessProbe).To(BeNil(), "nobody should end it while it reads a large database")
	g.Expect(pod.Spec.Containers[0].VolumeMounts).To(Equal([]corev1.VolumeMount{{Name: "data", MountPath: "/var/lib"}}))
	g.Expect(pod.Spec.Volumes).To(HaveLen(1))
	g.Expect(pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName).To(Equal("data-etcd-1"))
	g.Expect(pod.Spec.Tolerations).To(HaveLen(1))
}

func TestEndOfPause(t *testing.T) {
	now := time.Date(2027, 1, 31, 13, 0, 0, 0, time.FixedZone("", 3600))
	for name, c := range map[string]struct {
		until   *string
		noted   string
		restart bool
		want    string
	}{
		"When it has paused the cluster it should put back what was there": {ptr.To("true"), `{"paused":true,"before":"false"}`, false,
			`{"metadata":{"resourceVersion":"7"},"spec":{"pausedUntil":"false"}}`},
		"When nothing was there, or an older version has noted nothing, it should remove it": {ptr.To("true"), `{"paused":true}`, false,
			`{"metadata":{"resourceVersion":"7"},"spec":{"pausedUntil":null}}`},
		"When somebody has written something else since it should stay": {ptr.To("2100-01-01T00:00:00Z"), `{"paused":true,"before":"false"}`, false, `{"metadata":{}}`},
		"When somebody has removed it since it should stay away":        {nil, `{"paused":true,"before":"false"}`, false, `{"metadata":{}}`},
		"When the user has paused the cluster it should stay so": {ptr.To("true"), `{"paused":false}`, true,
			`{"metadata":{"annotations":{"hypershift.openshift.io/restart-date":"2027-01-31T12:00:00Z"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n := &note{}
			g.Expect(json.Unmarshal([]byte(c.noted), n)).To(Succeed())
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}, Spec: hyperv1.HostedClusterSpec{PausedUntil: c.until}}
			got, err := json.Marshal(endOfPause(hc, n, c.restart, now))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(MatchJSON(c.want))
		})
	}
}

func TestLasting(t *testing.T) {
	for value, want := range map[string]bool{"": false, "false": false, "False": false, "true": true, "True": true, "2020-01-01T00:00:00Z": false, "2100-01-01T00:00:00Z": false, "2100-01-01T00:00:00": false} {
		NewWithT(t).Expect(lasting(&value)).To(Equal(want), "When pausedUntil is %q it should tell whether that lasts", value)
	}
	NewWithT(t).Expect(lasting(nil)).To(BeFalse())
}

func TestStands(t *testing.T) {
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	for name, c := range map[string]struct {
		until  string
		status metav1.ConditionStatus
		of     int64
		want   bool
	}{
		"When the operator has seen the pause it should stand":                          {"true", no, 7, true},
		"When the operator has seen an earlier pause that ended it should not":          {"true", no, 5, false},
		"When the operator has seen the end of an earlier pause alone it should not":    {"true", yes, 6, false},
		"When the operator says nothing it should not":                                  {"true", "", 0, false},
		"When somebody has ended the pause and the operator is behind it should not":    {"", no, 6, false},
		"When the operator has seen a pause that ends by itself it should not be taken": {"2100-01-01T00:00:00Z", no, 7, false},
	} {
		t.Run(name, func(t *testing.T) {
			var conds []metav1.Condition
			if c.status != "" {
				conds = []metav1.Condition{{Type: hyperv1.ReconciliationActive, Status: c.status, ObservedGeneration: c.of}}
			}
			NewWithT(t).Expect(stands(&c.until, conds, 7)).To(Equal(c.want))
		})
	}
}

// TestRecoverQuorum loses two of three real members, with their data.
func TestRecoverQuorum(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
	c := testenv.Start(t).Client(t, scheme)
	hc, hcp := exampleCluster(w.ns)
	g.Expect(c.Create(t.Context(), hc)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(context.Background(), hc) })
	g.Expect(c.Create(t.Context(), hcp)).To(Succeed())
	for _, i := range []int{0, 2} {
		w.crash(i)
		g.Expect(os.RemoveAll(w.path(i, "data"))).To(Succeed())
	}
	w.report(1, corev1.ConditionFalse, corev1.ContainerStatus{Name: "etcd", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}) // no quorum
	out := &log{}
	q := Quorum{Client: c, Cluster: client.ObjectKeyFromObject(hc), Namespace: w.ns, Name: "etcd", From: "etcd-1", Log: out, Poll: 100 * time.Millisecond, Patience: 2 * time.Minute}
	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	key := client.ObjectKeyFromObject(hc)

	// The operators pass the pause on, and stop.
	g.Eventually(func() string {
		_ = c.Get(t.Context(), key, hc)
		return ptr.Deref(hc.Spec.PausedUntil, "")
	}, time.Minute).Should(Equal("true"), out.String)
	g.Expect(c.Patch(t.Context(), hcp, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"pausedUntil":"true"}}`)))).To(Succeed())
	tellPause(t.Context(), c, hc, hcp)
	// The controller of StatefulSets takes the pods away.
	set := &appsv1.StatefulSet{}
	replicas := func() int32 {
		_ = c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "etcd"}, set)
		return ptr.Deref(set.Spec.Replicas, 1)
	}
	g.Eventually(replicas, time.Minute).Should(BeZero(), out.String)
	w.kill(1)
	for i := range 3 {
		g.Expect(c.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name(i)}}, client.GracePeriodSeconds(0))).To(Succeed())
	}
	// The command dies, and somebody runs it again: once with another member, which is refused.
	g.Eventually(func() error {
		return c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "etcd-alone"}, &corev1.Pod{})
	}, time.Minute).Should(Succeed(), out.String)
	interrupt()
	g.Eventually(done, time.Minute).Should(Receive(MatchError(ContainSubstring("run the command again to continue"))))
	other := q
	other.From = "etcd-2"
	g.Expect(other.Run(t.Context())).To(MatchError(ContainSubstring("continue it with --from etcd-1")))
	for i := range 3 {
		claim := &corev1.PersistentVolumeClaim{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "data-" + name(i)}, claim)).To(Succeed())
		g.Expect(claim.DeletionTimestamp).To(BeNil(), "nothing should be deleted before the survivor has served alone")
	}
	go func() { done <- q.Run(t.Context()) }()

	// The kubelet runs the survivor alone, with the flags of its pod.
	ports, err := testenv.FreePorts(3)
	g.Expect(err).NotTo(HaveOccurred())
	flags := strings.Join(aloneFlags("etcd-1", w.path(1, "data"), ports[0]), " ")
	flags = strings.NewReplacer(":2379", fmt.Sprintf(":%d", ports[1]), ":2380", fmt.Sprintf(":%d", ports[2])).Replace(flags)
	alone, err := testenv.StartProcess(testenv.KubeBinary(t), filepath.Join(w.dir, name(1)), "etcd", nil, strings.Fields(flags)...)
	g.Expect(err).NotTo(HaveOccurred())
	w.running[7] = alone
	w.serving(ports[1])
	pod := &corev1.Pod{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "etcd-alone"}, pod)).To(Succeed())
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	g.Expect(c.Status().Update(t.Context(), pod)).To(Succeed())
	g.Eventually(func() bool { return w.gone(&corev1.Pod{}, "etcd-alone") }, time.Minute).Should(BeTrue(), out.String)
	w.kill(7)

	// Volumes of the others go, and new ones come.
	for _, i := range []int{0, 2} {
		g.Eventually(func() bool { // nobody here ends the protection of claims in use
			claim := &corev1.PersistentVolumeClaim{}
			if c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "data-" + name(i)}, claim) == nil && claim.DeletionTimestamp != nil {
				claim.Finalizers = nil
				_ = c.Update(t.Context(), claim)
			}
			return w.gone(&corev1.PersistentVolumeClaim{}, "data-"+name(i))
		}, time.Minute).Should(BeTrue(), out.String)
	}
	g.Eventually(replicas, time.Minute).Should(BeEquivalentTo(3), out.String)
	w.start(1)
	g.Eventually(func() error { return w.takesPart(1) }, time.Minute).Should(Succeed())
	for _, i := range []int{0, 2} {
		w.claim(i)
		g.Expect(w.resetBy(i, 1)).To(Succeed())
		w.start(i)
		g.Eventually(func() error { return w.takesPart(i) }, time.Minute).Should(Succeed())
	}
	for i := range 3 {
		w.pod(i)
	}
	g.Eventually(done, time.Minute).Should(Receive(BeNil()), out.String)
	g.Expect(c.Get(t.Context(), key, hc)).To(Succeed())
	g.Expect(ptr.Deref(hc.Spec.PausedUntil, "")).To(BeEmpty())
	g.Expect(hc.Annotations).To(HaveKey(hyperv1.RestartDateAnnotation))
	replicas()
	g.Expect(set.Annotations).NotTo(HaveKey(noteAnnotation))

	w.kill(1) // now the votes and the data of the new ones count
	etcd := w.etcd()
	defer etcd.Close()
	g.Eventually(func(g Gomega) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		got, err := etcd.Get(ctx, "key")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Kvs).To(HaveLen(1))
		g.Expect(string(got.Kvs[0].Value)).To(Equal("acknowledged"))
	}, time.Minute).Should(Succeed())
	g.Expect(q.Run(t.Context())).To(MatchError(ErrQuorum), "When a quorum is there nothing should be done")
}

func TestInterrupted(t *testing.T) {
	for name, lost := range map[string]client.Object{
		"When the command ends as it pauses the cluster it should say how to continue":    &hyperv1.HostedCluster{},
		"When the command ends as it makes a pod it should say how to continue":           &corev1.Pod{},
		"When the command ends as it stops the API servers it should say how to continue": &appsv1.Deployment{},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newStage(t, 3)
			// The write is done, and its answer is lost: whoever looks on sees it before the command does.
			is := func(o client.Object) bool { return reflect.TypeOf(o) == reflect.TypeOf(lost) }
			ctx, interrupt := context.WithCancel(t.Context())
			c := interceptor.NewClient(s.c, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					err := c.Create(ctx, o, opts...)
					if is(o) {
						interrupt()
						return context.Canceled
					}
					return err
				},
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					err := c.Patch(ctx, o, p, opts...)
					if is(o) {
						interrupt()
						return context.Canceled
					}
					return err
				},
			})
			err := s.quorum(c, io.Discard).Run(ctx)
			g.Expect(err).To(MatchError(context.Canceled))
			g.Expect(strings.Count(err.Error(), "run the command again to continue")).To(Equal(1), err.Error())
			g.Expect(s.quorum(s.c, io.Discard).Run(t.Context())).To(Succeed())
			s.expect(t, "snapshot", "", "")
		})
	}
}

// tellPause says what operators say when they have seen spec.pausedUntil: nothing is written that is there.
func tellPause(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, hcp *hyperv1.HostedControlPlane) {
	tell := func(o client.Object, conds *[]metav1.Condition, pausedUntil *string) {
		status := metav1.ConditionTrue
		if lasting(pausedUntil) {
			status = metav1.ConditionFalse
		}
		if meta.SetStatusCondition(conds, metav1.Condition{Type: hyperv1.ReconciliationActive, Status: status, Reason: "Told", ObservedGeneration: o.GetGeneration()}) {
			_ = c.Status().Update(ctx, o)
		}
	}
	tell(hc, &hc.Status.Conditions, hc.Spec.PausedUntil)
	tell(hcp, &hcp.Status.Conditions, hcp.Spec.PausedUntil)
}

// exampleCluster is a HostedCluster and its control plane in a namespace.
func exampleCluster(ns string) (*hyperv1.HostedCluster, *hyperv1.HostedControlPlane) {
	services := []hyperv1.ServicePublishingStrategyMapping{}
	for _, s := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		published := hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.10"}}
		if s == hyperv1.APIServer {
			published = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
		}
		services = append(services, hyperv1.ServicePublishingStrategyMapping{Service: s, ServicePublishingStrategy: published})
	}
	networking := hyperv1.ClusterNetworking{NetworkType: hyperv1.Other, ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}}, ClusterNetwork: []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}}
	etcd := hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo"}}
	hc.Spec.PullSecret.Name, hc.Spec.Release.Image, hc.Spec.Platform.Type = "pull", "registry.example.com/release:1", hyperv1.NonePlatform
	hc.Spec.IssuerURL, hc.Spec.Services, hc.Spec.Networking, hc.Spec.Etcd = "https://kubernetes.default.svc", services, networking, etcd
	hc.Spec.DNS.BaseDomain = "example.com"
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo"}}
	hcp.Spec.PullSecret.Name, hcp.Spec.ReleaseImage, hcp.Spec.Platform.Type, hcp.Spec.InfraID = "pull", "registry.example.com/release:1", hyperv1.NonePlatform, "demo"
	hcp.Spec.IssuerURL, hcp.Spec.Services, hcp.Spec.Networking, hcp.Spec.Etcd = "https://kubernetes.default.svc", services, networking, *etcd.DeepCopy()
	return hc, hcp
}
