package etcdrecovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/testenv"
)

func TestSnapshotCheck(t *testing.T) {
	s := Snapshot{URL: "s3://b/2.db.enc"}
	for name, c := range map[string]struct {
		replicas int32
		begun    *note
		want     string
	}{
		"When etcd runs it should begin":                           {replicas: 1},
		"When the same restore was interrupted it should go on":    {begun: &note{From: "etcd-0", Snapshot: s.URL}},
		"When the cluster sleeps it should say to wake it":         {want: "wake the hosted cluster first"},
		"When another backup is being restored it should name it":  {begun: &note{Snapshot: "s3://b/1.db.enc"}, want: "continue it with --from s3://b/1.db.enc"},
		"When a member's data is about to go on it should say so":  {begun: &note{From: "etcd-1"}, want: "hypershift etcd recover --from etcd-1"},
		"When a member's data is going on alone it should as well": {replicas: 3, begun: &note{From: "etcd-1", Alone: true}, want: "a recovery from etcd-1 is under way"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := s.check(c.replicas, c.begun)
			if c.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ErrQuorum))
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
	t.Run("When a restore is under way a recovery from a member should be refused", func(t *testing.T) {
		NewWithT(t).Expect(checkQuorum("etcd", 0, "etcd-0", &note{From: "etcd-0", Snapshot: s.URL}, nil, nil)).To(MatchError(ContainSubstring("hypershift restore --in-place --from " + s.URL)))
	})
}

func TestFailure(t *testing.T) {
	g := NewWithT(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "etcd-alone"}}
	_, failed := failure(pod)
	g.Expect(failed).To(BeFalse(), "When the pod waits it has not failed")
	pod.Status.Phase = corev1.PodFailed
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "the volume is full\n"}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: restorer, State: ended}}
	s, failed := failure(pod)
	g.Expect(failed).To(BeTrue())
	g.Expect(s.untouched).To(BeTrue(), "When the snapshot can't be restored the data of before is there")
	g.Expect(s.Error()).To(ContainSubstring("the volume is full"))
	pod.Status.InitContainerStatuses = nil
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "etcd", State: ended}}
	s, _ = failure(pod)
	g.Expect(s.untouched).To(BeFalse(), "When etcd itself fails the data has been replaced")
}

// stage is a control plane whose controllers and kubelet are played. What each volume holds is noted on its claim.
type stage struct {
	t        testing.TB
	c        client.WithWatch
	ns       string
	replicas int32
	broken   atomic.Bool // the snapshot can't be restored
	// shards are other etcds; broken1 is the StatefulSet of the one whose snapshot can't be restored.
	shards  []string
	broken1 atomic.Value
	// together counts for each etcd how many steps in a row have seen pods together that must not be.
	together map[string]int
	// paused is what spec.pausedUntil of the HostedCluster should say at the end.
	paused string
	// served: API servers have run with the data of the snapshot, which nothing may replace from then on. forgiven: somebody has started members with mixed data.
	served, forgiven atomic.Bool

	mu  sync.Mutex
	bad []string
}

// held says what a volume has: "before", "snapshot", or nothing yet. other says that something else was restored there, and takes room.
const held, other = "example.com/held", "example.com/beside"

func newStage(t testing.TB, replicas int32, shards ...string) *stage {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
	env := testenv.Start(t)
	s := &stage{t: t, c: env.Client(t, scheme), ns: env.Namespace(t), replicas: replicas, shards: shards, together: map[string]int{}}
	hc, hcp := exampleCluster(s.ns)
	app := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	}
	template := func(name string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app(name).MatchLabels}, Spec: podSpec()}
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "etcd"}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(replicas), Selector: app("etcd"), Template: template("etcd")}}
	set.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: config, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "etcd-config"}}}}}
	set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: volume, MountPath: "/var/lib"}}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: volume}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}}
	api := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: apiServer}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Selector: app(apiServer), Template: template(apiServer)}}
	objects := []client.Object{hc, hcp, api}
	for _, etcd := range backups.EtcdsOf(shards) {
		of := set.DeepCopy()
		of.Name, of.Spec.Selector, of.Spec.Template.Labels = etcd, app(etcd), app(etcd).MatchLabels
		objects = append(objects, of)
	}
	for _, o := range objects {
		g.Expect(s.c.Create(t.Context(), o)).To(Succeed())
	}
	t.Cleanup(func() { _ = s.c.Delete(context.Background(), hc) })
	for _, etcd := range backups.EtcdsOf(shards) {
		for i := range replicas {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: fmt.Sprintf("%s-%s-%d", volume, etcd, i), Annotations: map[string]string{held: "before"}}, Spec: set.Spec.VolumeClaimTemplates[0].Spec}
			g.Expect(s.c.Create(t.Context(), claim)).To(Succeed())
		}
	}
	ctx, end := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			s.play(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() { end(); done.Wait() })
	return s
}

// play is one step of everybody else. Errors pass: the next step tries again.
func (s *stage) play(ctx context.Context) {
	hc, hcp := exampleCluster(s.ns)
	api := &appsv1.Deployment{}
	err := errors.Join(s.c.Get(ctx, client.ObjectKeyFromObject(hc), hc), s.c.Get(ctx, client.ObjectKeyFromObject(hcp), hcp), s.c.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: apiServer}, api))
	if err != nil {
		return
	}
	if now := ptr.Deref(hc.Spec.PausedUntil, ""); now != ptr.Deref(hcp.Spec.PausedUntil, "") {
		hcp.Spec.PausedUntil = hc.Spec.PausedUntil
		_ = s.c.Update(ctx, hcp)
	}
	tellPause(ctx, s.c, hc, hcp)
	main := &appsv1.StatefulSet{}
	if s.c.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: "etcd"}, main) == nil && ptr.Deref(main.Spec.Replicas, 1) == 0 && !lasting(hcp.Spec.PausedUntil) {
		s.wrong("etcd is stopped, and operators with pausedUntil %q start it again", ptr.Deref(hcp.Spec.PausedUntil, ""))
	}
	for _, etcd := range backups.EtcdsOf(s.shards) {
		s.playEtcd(ctx, etcd, int(*api.Spec.Replicas))
	}
	claims := &corev1.PersistentVolumeClaimList{}
	_ = s.c.List(ctx, claims, client.InNamespace(s.ns))
	for i := range claims.Items {
		if claim := &claims.Items[i]; claim.DeletionTimestamp != nil && len(claim.Finalizers) > 0 {
			claim.Finalizers = nil
			_ = s.c.Update(ctx, claim)
		}
	}
}

// playEtcd is one step with one etcd, and with the API servers.
func (s *stage) playEtcd(ctx context.Context, etcd string, apiServers int) {
	set := &appsv1.StatefulSet{}
	if s.c.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: etcd}, set) != nil {
		return
	}
	// Pods are listed after they were looked for: those that this step deletes were there before.
	var alone []*corev1.Pod
	for _, end := range []string{"-alone", "-prepare", "-discard"} {
		pod := &corev1.Pod{}
		if s.c.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: etcd + end}, pod) == nil {
			alone = append(alone, pod)
		}
	}
	servers := s.run(ctx, apiServer, apiServers)
	members := s.run(ctx, etcd, int(*set.Spec.Replicas))
	if len(alone) > 0 && servers+members > 0 || len(alone) > 1 {
		s.together[etcd]++
	} else {
		s.together[etcd] = 0
	}
	if s.together[etcd] > 1 { // a controller may make pods once that were told to stop just then
		s.wrong("%d API servers and %d members of %s run beside %d pods that should be alone, such as %s", servers, members, etcd, len(alone), alone[0].Name)
	}
	for _, pod := range alone {
		s.alone(ctx, etcd, pod)
	}
}

// run makes and removes pods as their controller does, and says how many there were.
func (s *stage) run(ctx context.Context, app string, want int) int {
	pods := &corev1.PodList{}
	if s.c.List(ctx, pods, client.InNamespace(s.ns), client.MatchingLabels{"app": app}) != nil {
		return 0
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if want == 0 {
			_ = s.c.Delete(ctx, pod, client.GracePeriodSeconds(0))
		}
		s.ready(ctx, pod)
	}
	for i := range want {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: fmt.Sprintf("%s-%d", app, i), Labels: map[string]string{"app": app}}, Spec: podSpec()}
		if app != apiServer {
			s.ensureVolume(ctx, pod.Name)
		}
		_ = s.c.Create(ctx, pod)
	}
	if want > 0 && app != apiServer {
		s.mixed(ctx, app)
	}
	if want > 0 && app == apiServer {
		s.whole(ctx)
	}
	return len(pods.Items)
}

func (s *stage) ready(ctx context.Context, pod *corev1.Pod) {
	if PodOf(pod).Ready {
		return
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_ = s.c.Status().Update(ctx, pod)
}

func (s *stage) ensureVolume(ctx context.Context, pod string) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: volume + "-" + pod}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	_ = s.c.Create(ctx, claim) // it is there, most of the time
}

// mixed notes when members run some of which have the data of before, and others that of the snapshot.
func (s *stage) mixed(ctx context.Context, etcd string) {
	seen := s.contents(ctx, etcd)
	for _, one := range seen {
		if one == "before" && seen[0] == "snapshot" && !s.forgiven.Load() {
			s.wrong("members run with %v", seen)
		}
	}
}

// whole notes when API servers run while some etcds have the data of before, and others that of the snapshot.
func (s *stage) whole(ctx context.Context) {
	first := s.contents(ctx, "etcd")[0]
	if first == "snapshot" {
		s.served.Store(true)
	}
	for _, etcd := range backups.EtcdsOf(s.shards) {
		if got := s.contents(ctx, etcd)[0]; got != first && !s.forgiven.Load() {
			s.wrong("API servers run, and etcd has %q, %s %q", first, etcd, got)
		}
	}
}

func (s *stage) contents(ctx context.Context, etcd string) []string {
	out := make([]string, s.replicas)
	for i := range out {
		claim := &corev1.PersistentVolumeClaim{}
		if s.c.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: fmt.Sprintf("%s-%s-%d", volume, etcd, i)}, claim) == nil {
			out[i] = claim.Annotations[held]
		}
	}
	return out
}

// alone is the kubelet with the pod that restores.
func (s *stage) alone(ctx context.Context, etcd string, pod *corev1.Pod) {
	if PodOf(pod).Ready || pod.Status.Phase == corev1.PodSucceeded || pod.DeletionTimestamp != nil {
		if pod.DeletionTimestamp != nil {
			_ = s.c.Delete(ctx, pod, client.GracePeriodSeconds(0))
		}
		return
	}
	claim := &corev1.PersistentVolumeClaim{}
	if s.c.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: "data-" + etcd + "-0"}, claim) != nil {
		return // it stays pending
	}
	note := func(key, value string) bool {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, key, value)
		return s.c.Update(ctx, claim) == nil
	}
	if discards := strings.HasSuffix(pod.Name, "-discard"); discards || strings.HasSuffix(pod.Name, "-prepare") && s.broken1.Load() != etcd { // nothing is replaced
		if word := map[bool]string{true: "", false: "prepared"}[discards]; note(other, word) {
			pod.Status.Phase = corev1.PodSucceeded
			_ = s.c.Status().Update(ctx, pod)
		}
		return
	}
	if s.broken.Load() || s.broken1.Load() == etcd {
		if !note(other, "half") {
			return
		}
		pod.Status.Phase = corev1.PodFailed
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: restorer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "403 from the bucket"}}}}
		_ = s.c.Status().Update(ctx, pod)
		return
	}
	if len(pod.Spec.InitContainers) == 0 { // it serves what it has
		s.ready(ctx, pod)
		return
	}
	if claim.Annotations[held] == "snapshot" && s.served.Load() {
		s.wrong("the snapshot is restored in %s again, over what users have written", etcd)
	}
	claim.Annotations = nil
	if note(held, "snapshot") {
		s.ready(ctx, pod)
	}
}

func (s *stage) wrong(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad = append(s.bad, fmt.Sprintf(format, args...))
}

func (s *stage) quorum(c client.Client, out io.Writer) Quorum {
	return Quorum{Client: c, Cluster: client.ObjectKey{Namespace: s.ns, Name: "demo"}, Namespace: s.ns, Name: "etcd", From: "etcd-0", Log: out, Poll: 10 * time.Millisecond, Patience: 2 * time.Minute,
		Snapshot: &Snapshot{URL: "s3://b/1.db.enc", Image: "operators:1", Bump: 7, Shards: s.shards}}
}

// expect looks at the end.
func (s *stage) expect(t testing.TB, contents ...string) {
	t.Helper()
	g := NewWithT(t)
	hc, set, api := &hyperv1.HostedCluster{}, &appsv1.StatefulSet{}, &appsv1.Deployment{}
	g.Expect(s.c.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: "demo"}, hc)).To(Succeed())
	g.Expect(s.c.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: "etcd"}, set)).To(Succeed())
	g.Expect(s.c.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: apiServer}, api)).To(Succeed())
	g.Expect(ptr.Deref(hc.Spec.PausedUntil, "")).To(Equal(s.paused))
	g.Expect(*set.Spec.Replicas).To(Equal(s.replicas))
	g.Expect(*api.Spec.Replicas).To(BeEquivalentTo(2))
	g.Expect(set.Annotations).NotTo(HaveKey(noteAnnotation))
	for _, etcd := range backups.EtcdsOf(s.shards) {
		g.Expect(s.contents(t.Context(), etcd)).To(Equal(contents), etcd)
		claim := &corev1.PersistentVolumeClaim{}
		g.Expect(s.c.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: volume + "-" + etcd + "-0"}, claim)).To(Succeed())
		g.Expect(claim.Annotations[other]).To(BeEmpty(), "nothing is left beside the data of %s", etcd)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g.Expect(s.bad).To(BeEmpty())
}

// TestRestoreInPlaceCrashes is killed at each of its writes.
func TestRestoreInPlaceCrashes(t *testing.T) {
	testenv.CrashAtEveryWrite(t, 2, func(t testing.TB) testenv.CrashCase {
		return crashes(t, newStage(t, 3), "snapshot", "", "")
	})
}

// crashes is a restore that is killed, and what volumes hold at its end.
func crashes(t testing.TB, s *stage, contents ...string) testenv.CrashCase {
	return testenv.CrashCase{Client: s.c,
		Run: func(c client.WithWatch) error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if f, faulty := c.(*testenv.FaultClient); faulty {
				var look func() // it would try again for minutes what a dead process does not
				look = func() {
					switch {
					case f.Fired():
						time.AfterFunc(100*time.Millisecond, cancel)
					case ctx.Err() == nil:
						time.AfterFunc(10*time.Millisecond, look)
					}
				}
				look()
			}
			err := s.quorum(c, io.Discard).Run(ctx)
			if _, faulty := c.(*testenv.FaultClient); !faulty && errors.Is(err, ErrQuorum) || errors.Is(err, ErrNotRestored) {
				return nil // it had ended, or ends by giving up
			}
			return err
		},
		Check: func(t testing.TB) { s.expect(t, contents...) },
	}
}

// TestRestoreShardsCrashes is killed at each of its writes, with two etcds.
func TestRestoreShardsCrashes(t *testing.T) {
	testenv.CrashAtEveryWrite(t, 4, func(t testing.TB) testenv.CrashCase { return crashes(t, newStage(t, 1, "leases"), "snapshot") })
}

// TestRestoreGivenUpCrashes is killed at each of its writes, when the snapshot of a shard can't be restored.
func TestRestoreGivenUpCrashes(t *testing.T) {
	testenv.CrashAtEveryWrite(t, 4, func(t testing.TB) testenv.CrashCase {
		s := newStage(t, 1, "leases")
		s.broken1.Store("etcd-leases")
		return crashes(t, s, "before")
	})
}

func TestRestoreInPlace(t *testing.T) {
	t.Run("When a volume is lost it should be made again, as the StatefulSet would", func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t, 1)
		set, claim := &appsv1.StatefulSet{}, &corev1.PersistentVolumeClaim{}
		g.Expect(s.c.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: "etcd"}, set)).To(Succeed())
		for range 2 { // the second time it is there
			g.Expect(s.quorum(s.c, io.Discard).ensureClaim(t.Context(), set, "etcd-7")).To(Succeed())
		}
		g.Expect(s.c.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: "data-etcd-7"}, claim)).To(Succeed())
		g.Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal("1Gi"))
	})
	t.Run("When the snapshot can't be restored everything should go on with the data of before", func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t, 3)
		s.broken.Store(true)
		err := s.quorum(s.c, io.Discard).Run(t.Context())
		g.Expect(err).To(MatchError(ErrNotRestored))
		g.Expect(err).To(MatchError(ContainSubstring("403 from the bucket")))
		s.expect(t, "before", "before", "before")
		hc := &hyperv1.HostedCluster{}
		g.Expect(s.c.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: "demo"}, hc)).To(Succeed())
		g.Expect(hc.Annotations).NotTo(HaveKey(hyperv1.RestartDateAnnotation))
	})
}

// pauseUntil is what a user writes.
func (s *stage) pauseUntil(value string) {
	s.t.Helper()
	hc, _ := exampleCluster(s.ns)
	NewWithT(s.t).Expect(s.c.Patch(s.t.Context(), hc, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"pausedUntil":"`+value+`"}}`)))).To(Succeed())
	s.paused = value
}

// beforePatch calls do once, before the first patch of an object like this one.
func (s *stage) beforePatch(like client.Object, do func()) client.Client {
	var once sync.Once
	return interceptor.NewClient(s.c, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if reflect.TypeOf(o) == reflect.TypeOf(like) {
			once.Do(do)
		}
		return c.Patch(ctx, o, p, opts...)
	}})
}

func TestRestoreWhilePaused(t *testing.T) {
	const tomorrow = "2100-01-01T00:00:00Z"
	for name, before := range map[string]string{
		"When pausedUntil is false the operators should be paused, and it should be put back":              "false",
		"When pausedUntil is over the operators should be paused, and it should be put back":               "2020-01-01T00:00:00Z",
		"When pausedUntil may end halfway the operators should be paused for longer, and it be put back":   tomorrow,
		"When the user has paused the cluster without an end that should stay":                             "True",
		"When the user has paused the cluster without an end in the command's words that should stay, too": "true",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 1)
			s.pauseUntil(before)
			NewWithT(t).Expect(s.quorum(s.c, io.Discard).Run(t.Context())).To(Succeed())
			s.expect(t, "snapshot")
		})
	}
	t.Run("When the snapshot can't be restored pausedUntil should be put back as well", func(t *testing.T) {
		s := newStage(t, 1)
		s.broken.Store(true)
		s.pauseUntil("false")
		NewWithT(t).Expect(s.quorum(s.c, io.Discard).Run(t.Context())).To(MatchError(ErrNotRestored))
		s.expect(t, "before")
	})
	t.Run("When the user pauses the cluster meanwhile that should stay", func(t *testing.T) {
		s := newStage(t, 1)
		c := s.beforePatch(&appsv1.Deployment{}, func() { s.pauseUntil("True") })
		NewWithT(t).Expect(s.quorum(c, io.Discard).Run(t.Context())).To(Succeed())
		s.expect(t, "snapshot")
	})
	t.Run("When the user changes pausedUntil just as it is replaced the new value should be put back", func(t *testing.T) {
		s := newStage(t, 1)
		s.pauseUntil("false")
		c := s.beforePatch(&hyperv1.HostedCluster{}, func() { s.pauseUntil(tomorrow) })
		NewWithT(t).Expect(s.quorum(c, io.Discard).Run(t.Context())).To(Succeed())
		s.expect(t, "snapshot")
	})
	for name, old := range map[string]struct{ note, until, want string }{
		"When an older version has paused the cluster the pause should end":                           {`"paused":true`, "true", ""},
		"When an older version took false for a pause the operators should be paused for the rest":    {`"paused":false`, "false", "false"},
		"When an older version found the cluster paused it should stay so":                            {`"paused":false`, "true", "true"},
		"When it was killed before it had paused the cluster it should do so, and put the value back": {`"paused":true,"before":"false"`, "false", "false"},
		"When it was killed after it had paused the cluster it should put the value back":             {`"paused":true,"before":"false"`, "true", "false"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newStage(t, 1)
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "etcd"}}
			begun, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{noteAnnotation: `{"from":"etcd-0","replicas":1,"snapshot":"s3://b/1.db.enc","apiServers":2,` + old.note + `}`}}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.c.Patch(t.Context(), set, client.RawPatch(types.MergePatchType, begun))).To(Succeed())
			s.pauseUntil(old.until)
			s.paused = old.want
			g.Expect(s.quorum(s.c, io.Discard).Run(t.Context())).To(Succeed())
			s.expect(t, "snapshot")
		})
	}
}

func TestRestoreShards(t *testing.T) {
	t.Run("When there are shards all etcds should have the data of the backup before API servers run again", func(t *testing.T) {
		s := newStage(t, 3, "events", "leases")
		NewWithT(t).Expect(s.quorum(s.c, io.Discard).Run(t.Context())).To(Succeed())
		s.expect(t, "snapshot", "", "")
	})
	t.Run("When the snapshot of one shard can't be restored everything should go on with the data of before", func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t, 3, "events", "leases")
		s.broken1.Store("etcd-leases")
		err := s.quorum(s.c, io.Discard).Run(t.Context())
		g.Expect(err).To(MatchError(ErrNotRestored))
		g.Expect(err).To(MatchError(ContainSubstring("shard leases: ")))
		s.expect(t, "before", "before", "before")
	})
	t.Run("When a shard doesn't run nothing should be changed", func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t, 1, "leases")
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "etcd-leases"}}
		g.Expect(s.c.Patch(t.Context(), set, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`)))).To(Succeed())
		g.Expect(s.quorum(s.c, io.Discard).Run(t.Context())).To(MatchError(ContainSubstring("etcd-leases doesn't run")))
	})
	t.Run("When each etcd leads from its own revision each should be told its own bump, and that of an earlier run if there was one", func(t *testing.T) {
		q := Quorum{Snapshot: &Snapshot{Bump: 7, ShardBumps: map[string]uint64{"leases": 9}}}
		bumps := func() []uint64 {
			return []uint64{q.Snapshot.Bump, q.shard("leases").Snapshot.Bump, q.shard("events").Snapshot.Bump}
		}
		g := NewWithT(t)
		g.Expect(bumps()).To(Equal([]uint64{7, 9, 7}))
		q.Snapshot = q.Snapshot.as(&note{Bump: 3, ShardBumps: map[string]uint64{"leases": 4}})
		g.Expect(bumps()).To(Equal([]uint64{3, 4, 3}))
		q.Snapshot = q.Snapshot.as(&note{Bump: 5})
		g.Expect(bumps()).To(Equal([]uint64{5, 5, 5}), "an older version has noted one for all")
	})
	t.Run("When a snapshot is prepared the pod should have no etcd, and replace nothing", func(t *testing.T) {
		g := NewWithT(t)
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "etcd-leases"}}
		set.Spec.Template.Spec = podSpec()
		pod := Snapshot{URL: "s3://b/1.db.enc", Image: "operators:1", Bump: 7, Shard: "leases"}.restorePod(set, "etcd-leases-0", toPrepare)
		g.Expect(pod.Name).To(Equal("etcd-leases-prepare"))
		g.Expect(pod.Spec.InitContainers).To(BeEmpty())
		g.Expect(pod.Spec.Containers).To(HaveLen(1))
		g.Expect(pod.Spec.Containers[0].Args).To(ContainElements("--prepare", "--shard=leases", "--revision-bump=7"))
		g.Expect(pod.Spec.Containers[0].Args).NotTo(ContainElement("--replace"))
	})
}

func TestRestoreIn(t *testing.T) {
	g := NewWithT(t)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "etcd"}}
	set.Spec.Template.Spec = corev1.PodSpec{Volumes: []corev1.Volume{{Name: config}, {Name: "server-tls"}},
		Containers: []corev1.Container{{Name: "etcd", Image: "etcd:1", SecurityContext: &corev1.SecurityContext{RunAsNonRoot: ptr.To(true)}, VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: "/var/lib"}}}}}
	pod := alonePod(set, "etcd-0")
	Snapshot{URL: "s3://b/1.db.enc", Image: "operators:1", Bump: 7}.restoreIn(pod, set, "etcd-0")
	g.Expect(pod.Labels).To(Equal(map[string]string{backups.RestoreLabel: ""}))
	g.Expect(pod.Spec.InitContainers).To(HaveLen(1))
	init := pod.Spec.InitContainers[0]
	g.Expect(init.Args).To(ContainElements("--replace", "--revision-bump=7"))
	g.Expect(init.Env).To(ContainElement(corev1.EnvVar{Name: "POD_NAME", Value: "etcd-0"}))
	g.Expect(*init.SecurityContext.RunAsNonRoot).To(BeTrue())
	var mounted []string
	for _, m := range init.VolumeMounts {
		mounted = append(mounted, m.Name)
	}
	g.Expect(mounted).To(ConsistOf(config, backups.Secret, volume))
	g.Expect(pod.Spec.Volumes).To(HaveLen(3), "certificates are not needed")
}
