package etcdrecovery

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/sidecar/etcdinit"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// world is three real members of etcd, and their pods and volumes on a real API server, whose controllers and kubelet the test plays.
type world struct {
	t       *testing.T
	c       client.WithWatch
	ns, dir string
	ports   []int // peers, then clients
	running map[int]*testenv.Process
}

func newWorld(t *testing.T) *world {
	t.Helper()
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	w := &world{t: t, c: env.Client(t, scheme), ns: env.Namespace(t), dir: t.TempDir(), running: map[int]*testenv.Process{}}
	var err error
	w.ports, err = testenv.FreePorts(6)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		for i := range w.running {
			w.kill(i)
		}
	})
	g.Expect(w.c.Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "etcd"},
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "etcd"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "etcd"}}, Spec: podSpec()}},
	})).To(Succeed())
	for i := range 3 {
		w.claim(i)
		w.pod(i)
		g.Expect(w.reset(i)).To(Succeed())
	}
	for i := range 3 {
		w.start(i)
	}
	g.Eventually(func() error { return w.put("key", "acknowledged") }, time.Minute).Should(Succeed())
	for i := range 3 {
		g.Eventually(func() error { return w.takesPart(i) }, time.Minute).Should(Succeed())
	}
	return w
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: "etcd"}}}
}

func name(i int) string { return fmt.Sprintf("etcd-%d", i) }

func (w *world) peer(i int) string   { return fmt.Sprintf("http://127.0.0.1:%d", w.ports[i]) }
func (w *world) client(i int) string { return fmt.Sprintf("http://127.0.0.1:%d", w.ports[3+i]) }
func (w *world) path(i int, file string) string {
	return filepath.Join(w.dir, name(i), file)
}

// reset is the init container of a member.
func (w *world) reset(i int) error { return w.resetBy(i, (i+1)%3) }

// resetBy is reset that asks a certain member.
func (w *world) resetBy(i, asked int) error {
	var founders []string
	for j := range 3 {
		founders = append(founders, name(j)+"="+w.peer(j))
	}
	template := strings.Join([]string{
		"name: " + name(i), "data-dir: " + w.path(i, "data"), "initial-cluster: " + strings.Join(founders, ","), "initial-cluster-token: demo",
		"initial-cluster-state: new", "listen-peer-urls: " + w.peer(i), "initial-advertise-peer-urls: " + w.peer(i),
		"listen-client-urls: " + w.client(i), "advertise-client-urls: " + w.client(i), "unsafe-no-fsync: true", "log-level: warn",
	}, "\n")
	if err := os.MkdirAll(filepath.Join(w.dir, name(i)), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(w.path(i, "template.yaml"), []byte(template), 0o600); err != nil {
		return err
	}
	cmd := etcdinit.Command()
	cmd.SetArgs([]string{"reset-member", "--name=" + name(i), "--config-template=" + w.path(i, "template.yaml"), "--config-out=" + w.path(i, "etcd.yaml"),
		"--state-file=", "--endpoint=" + w.client(asked), "--cacert=", "--cert=", "--key="})
	cmd.SetOut(&bytes.Buffer{})
	return cmd.ExecuteContext(w.t.Context())
}

func (w *world) start(i int) {
	w.t.Helper()
	p, err := testenv.StartProcess(testenv.KubeBinary(w.t), filepath.Join(w.dir, name(i)), "etcd", nil, "--config-file="+w.path(i, "etcd.yaml"))
	NewWithT(w.t).Expect(err).NotTo(HaveOccurred())
	w.running[i] = p
}

func (w *world) kill(i int) {
	w.running[i].Kill()
	delete(w.running, i)
}

func (w *world) etcd() *clientv3.Client {
	w.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{w.client(0), w.client(1), w.client(2)}, Logger: zap.NewNop()})
	NewWithT(w.t).Expect(err).NotTo(HaveOccurred())
	return c
}

func (w *world) put(key, value string) error {
	c := w.etcd()
	defer c.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Second)
	defer cancel()
	_, err := c.Put(ctx, key, value)
	return err
}

func (w *world) takesPart(i int) error {
	return w.connection().Healthy(w.t.Context(), etcdinit.Member{ClientURLs: []string{w.client(i)}})
}

// serving waits until a member answers reads that take a quorum.
func (w *world) serving(port int) {
	w.t.Helper()
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	NewWithT(w.t).Eventually(func() error { return w.connection().Healthy(w.t.Context(), etcdinit.Member{ClientURLs: []string{url}}) }, time.Minute).Should(Succeed())
}

func (w *world) connection() etcdinit.Connection {
	w.t.Helper()
	c, err := etcdinit.Connect([]string{w.client(0), w.client(1), w.client(2)}, etcdinit.TLSFiles{})
	NewWithT(w.t).Expect(err).NotTo(HaveOccurred())
	return c
}

func (w *world) claim(i int) {
	w.t.Helper()
	NewWithT(w.t).Expect(w.c.Create(w.t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "data-" + name(i)},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	})).To(Succeed())
}

// pod makes a member's pod, ready.
func (w *world) pod(i int) {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name(i), Labels: map[string]string{"app": "etcd"}}, Spec: podSpec()}
	NewWithT(w.t).Expect(w.c.Create(w.t.Context(), pod)).To(Succeed())
	w.report(i, corev1.ConditionTrue, corev1.ContainerStatus{Name: "etcd", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
}

func (w *world) report(i int, ready corev1.ConditionStatus, status corev1.ContainerStatus) {
	w.t.Helper()
	g := NewWithT(w.t)
	pod := &corev1.Pod{}
	g.Expect(w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: name(i)}, pod)).To(Succeed())
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	g.Expect(w.c.Status().Update(w.t.Context(), pod)).To(Succeed())
}

// crash ends a member, and its pod is started again in vain.
func (w *world) crash(i int) {
	w.t.Helper()
	w.kill(i)
	w.report(i, corev1.ConditionFalse, corev1.ContainerStatus{Name: "etcd", RestartCount: 4,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}})
}

func (w *world) recovery(log *log) Recovery {
	return Recovery{Client: w.c, Namespace: w.ns, Name: "etcd", Cluster: w.connection(), Log: log, poll: 100 * time.Millisecond, patience: 90 * time.Second}
}

func (w *world) gone(obj client.Object, name string) bool {
	err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, obj)
	return client.IgnoreNotFound(err) == nil && err != nil
}

// log is written by a recovery and read by its test.
type log struct {
	sync.Mutex
	strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.Builder.Write(p)
}

func TestRecover(t *testing.T) {
	t.Run("When one of three members lost its data and crashes it should be replaced and have the data of the others", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.crash(2)
		g.Expect(os.RemoveAll(w.path(2, "data"))).To(Succeed())
		out := &log{}
		done := make(chan error, 1)
		r := w.recovery(out)
		r.election = r.patience // it may have been the leader
		go func() { done <- r.Run(t.Context()) }()

		// The controllers: the claim is there until its pod is gone, then both come again.
		g.Eventually(func() bool { return w.gone(&corev1.Pod{}, "etcd-2") }, time.Minute, 50*time.Millisecond).Should(BeTrue(), out.String)
		claim := &corev1.PersistentVolumeClaim{}
		g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "data-etcd-2"}, claim)).To(Succeed())
		g.Expect(claim.DeletionTimestamp).NotTo(BeNil(), "the claim goes before its pod, so that the next pod doesn't get the same volume")
		claim.Finalizers = nil
		g.Expect(w.c.Update(t.Context(), claim)).To(Succeed())
		w.claim(2)
		g.Expect(w.reset(2)).To(Succeed())
		w.start(2)
		g.Eventually(func() error { return w.takesPart(2) }, time.Minute).Should(Succeed())
		w.pod(2)
		g.Eventually(done, 2*time.Minute).Should(Receive(BeNil()))
		g.Expect(out.String()).To(And(ContainSubstring("removing member"), ContainSubstring("deleting PersistentVolumeClaim data-etcd-2"), ContainSubstring("done: all 3 members are healthy")))

		w.kill(0) // now the vote and the data of the new one count
		c := w.etcd()
		defer c.Close()
		g.Eventually(func(g Gomega) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			got, err := c.Get(ctx, "key")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.Kvs).To(HaveLen(1))
			g.Expect(string(got.Kvs[0].Value)).To(Equal("acknowledged"))
		}, time.Minute).Should(Succeed())
	})

	refused := func(t *testing.T, w *world, why string) {
		t.Helper()
		g := NewWithT(t)
		err := w.recovery(&log{}).Run(t.Context())
		g.Expect(err).To(MatchError(ErrRefused))
		g.Expect(err).To(MatchError(ContainSubstring(why)))
		for i := range 3 {
			pod, claim := &corev1.Pod{}, &corev1.PersistentVolumeClaim{}
			g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name(i)}, pod)).To(Succeed())
			g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "data-" + name(i)}, claim)).To(Succeed())
			g.Expect(pod.DeletionTimestamp).To(BeNil())
			g.Expect(claim.DeletionTimestamp).To(BeNil())
		}
	}
	t.Run("When two members crash nothing should be deleted", func(t *testing.T) {
		w := newWorld(t)
		w.crash(1)
		w.crash(2)
		refused(t, w, "can't be read from a quorum")
	})
	t.Run("When one crashes and another is dead without anybody having noticed nothing should be deleted", func(t *testing.T) {
		w := newWorld(t)
		w.kill(0) // its pod still seems ready
		w.crash(2)
		refused(t, w, "can't be read from a quorum")
	})
}
