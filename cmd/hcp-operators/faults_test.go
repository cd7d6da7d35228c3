package main

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packages "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

// patience is for what processes do on a busy machine.
const patience = 2 * time.Minute

// blink is an outage that is shorter than a lease.
const blink = 4 * time.Second

// outage is how long the API server is away beyond the end of the lease: four seconds, or what OUTAGE says (OUTAGE=10m). Nothing depends on it but the
// number of requests.
var outage = cmp.Or(parseDuration(os.Getenv("OUTAGE")), blink)

// parseDuration is zero for what is no duration.
func parseDuration(s string) time.Duration {
	d, _ := time.ParseDuration(s)
	return d
}

// leaseHolder is a program that works with a lease.
type leaseHolder struct {
	program    string
	deployment string // of an installation; empty: not a part of it
	lease      string
	args       []string
	// object is what it looks after; change is a merge patch of that with a number, so that the program has to write; done says whether it has.
	object func(ns string) client.Object
	change string
	done   func(s *scene, number int64) error
}

var operators = []leaseHolder{
	{
		program: "hypershift-operator", deployment: "operator", lease: "hypershift-operator-leader-elect",
		args:   []string{"hypershift-operator", "run", "--kubeconfig=KUBECONFIG", "--namespace=NAMESPACE", "--control-plane-operator-image=registry.invalid/operator:1", "--metrics-addr=0"},
		object: func(ns string) client.Object { return testenv.HostedCluster(ns, "demo") }, change: anotherRelease, done: (*scene).reported,
	},
	{
		program: "control-plane-operator", lease: "control-plane-operator-leader-elect",
		args:   []string{"control-plane-operator", "run", "--kubeconfig=KUBECONFIG", "--namespace=NAMESPACE", "--metrics-addr=0", "--health-probe-addr=0"},
		object: hostedControlPlane, change: anotherRelease, done: (*scene).reported,
	},
	{
		program: "package-operator-manager", deployment: "package-operator-manager", lease: "8a4hp84a6s.package-operator-lock",
		args:   []string{"package-operator-manager", "--kubeconfig=KUBECONFIG", "--namespace=NAMESPACE", "--metrics-addr=0", "--health-probe-bind-address=0"},
		object: func(ns string) client.Object { return packagestest.ObjectDeployment(ns, "demo", phaseWith(0)) },
		change: `{"spec":{"template":{"spec":{"phases":[{"name":"a","objects":[{"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"number":"%d"}}}]}]}}}}`,
		done:   (*scene).applied,
	},
}

const anotherRelease = `{"spec":{"pausedUntil":null,"release":{"image":"registry.invalid/release:%d"},"releaseImage":"registry.invalid/release:%[1]d"}}`

// phaseWith has a ConfigMap with a number.
func phaseWith(number int64) packages.ObjectSetTemplatePhase {
	return packagestest.Phase("a", packagestest.ConfigMap("settings", map[string]any{"number": strconv.FormatInt(number, 10)}))
}

func hostedControlPlane(ns string) client.Object {
	hc := testenv.HostedCluster(ns, "demo")
	return &hyperv1.HostedControlPlane{ObjectMeta: hc.ObjectMeta, Spec: hyperv1.HostedControlPlaneSpec{
		ReleaseImage: "registry.invalid/release:1", PullSecret: hc.Spec.PullSecret, Platform: hc.Spec.Platform, Networking: hc.Spec.Networking, Services: hc.Spec.Services,
		IssuerURL: "https://kubernetes.default.svc", InfraID: "demo", ControllerAvailabilityPolicy: hyperv1.SingleReplica,
		Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}},
	}}
}

// scene is a namespace with an operator's object.
type scene struct {
	leaseHolder
	*testing.T
	env *testenv.Env
	c   client.Client
	ns  string
	obj client.Object
}

func newScene(t *testing.T, o leaseHolder) *scene {
	t.Helper()
	env := packagestest.Serve(t).Env
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{hyperv1.AddToScheme, packages.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &scene{leaseHolder: o, T: t, env: env, c: env.Client(t, scheme), ns: env.Namespace(t)}
	s.obj = o.object(s.ns)
	if err := s.c.Create(t.Context(), s.obj); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) arguments() (out []string) {
	for _, a := range s.args {
		if a == "--namespace=NAMESPACE" {
			a = "--namespace=" + s.ns
		}
		out = append(out, a)
	}
	return out
}

// holder is who has the lease.
func (s *scene) holder() string {
	lease := &coordinationv1.Lease{}
	if err := s.c.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: s.lease}, lease); err != nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// poke changes the object, and returns a function that waits until the program has done what follows.
func (s *scene) poke(g Gomega) (done func() error) {
	number := time.Now().UnixNano()
	g.Expect(s.c.Patch(s.Context(), s.obj, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, s.change, number)))).To(Succeed())
	return func() error { return s.done(s, number) }
}

// reported waits for a status of the object's generation.
func (s *scene) reported(int64) error {
	if err := s.c.Get(s.Context(), client.ObjectKeyFromObject(s.obj), s.obj); err != nil {
		return err
	}
	var conditions []metav1.Condition
	switch obj := s.obj.(type) {
	case *hyperv1.HostedCluster:
		conditions = obj.Status.Conditions
	case *hyperv1.HostedControlPlane:
		conditions = obj.Status.Conditions
	}
	for _, c := range conditions {
		if c.ObservedGeneration == s.obj.GetGeneration() {
			return nil
		}
	}
	return fmt.Errorf("no condition is of generation %d", s.obj.GetGeneration())
}

// applied waits for the ConfigMap of the latest revision.
func (s *scene) applied(number int64) error {
	cm := &corev1.ConfigMap{}
	if err := s.c.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: "settings"}, cm); err != nil {
		return err
	}
	if got := cm.Data["number"]; got != strconv.FormatInt(number, 10) {
		return fmt.Errorf("the ConfigMap has number %s, not %d", got, number)
	}
	return nil
}

// TestStoppedLeader stops the leader for longer than its lease lasts, as a paused machine or SIGSTOP does.
func TestStoppedLeader(t *testing.T) {
	for _, o := range operators {
		t.Run("When "+o.program+" stands still for longer than its lease it should write nothing more, and end", func(t *testing.T) {
			t.Parallel()
			g, s := NewWithT(t), newScene(t, o)
			first := start(t, newLink(t, s.env), short, "first", s.arguments()...)
			g.Eventually(s.holder, patience).Should(Equal("first"))
			g.Eventually(s.poke(g), patience).Should(Succeed())
			second := start(t, newLink(t, s.env), eager, "second", s.arguments()...)

			g.Expect(first.Process.Signal(syscall.SIGSTOP)).To(Succeed())
			reported := s.poke(g) // which the first sees when it goes on
			g.Eventually(s.holder, patience).Should(Equal("second"))
			taken := time.Now()
			g.Eventually(reported, patience).Should(Succeed(), "the second one goes on with the work")
			g.Expect(first.Process.Signal(syscall.SIGCONT)).To(Succeed())
			var end error
			g.Eventually(first.ended, patience).Should(Receive(&end))
			g.Expect(end).To(HaveOccurred(), "kubelet starts what has failed anew")
			g.Expect(first.sent(taken, request.write)).To(BeEmpty(), "there is one writer")
			g.Eventually(s.poke(g), patience).Should(Succeed())
			g.Expect(s.holder()).To(Equal("second"))
			g.Expect(second.sent(taken, request.write)).NotTo(BeEmpty())
		})
	}
}

// TestServerAway has operators whose API server is away, for shorter and for longer than their lease lasts.
func TestServerAway(t *testing.T) {
	for _, o := range operators {
		t.Run("When "+o.program+" has no API server it should go on if that is short, else be started again and wait, and in both cases ask seldom", func(t *testing.T) {
			t.Parallel()
			g, s := NewWithT(t), newScene(t, o)
			p := start(t, newLink(t, s.env), eager, "first", s.arguments()...)
			g.Eventually(s.poke(g), patience).Should(Succeed())

			cut := time.Now()
			p.away(true)
			wait(t, blink)
			reported := s.poke(g)
			p.away(false)
			mended := time.Now()
			g.Eventually(reported, patience).Should(Succeed())
			t.Logf("%s without the API server: %d requests, and what happened meanwhile was reported %s after its end",
				mended.Sub(cut).Round(time.Second), len(p.sent(cut, away)), time.Since(mended).Round(time.Second/10))
			g.Expect(p.ended).NotTo(Receive(), "the lease was still there")
			g.Expect(p.Process.Kill()).To(Succeed())

			p = start(t, p.link, short, "first", s.arguments()...)
			g.Eventually(s.poke(g), patience).Should(Succeed())
			cut = time.Now()
			p.away(true)
			var end error
			g.Eventually(p.ended, patience).Should(Receive(&end))
			g.Expect(end).To(HaveOccurred(), "kubelet starts what has failed anew")
			again := start(t, p.link, eager, "first", s.arguments()...)
			wait(t, outage)
			g.Expect(again.ended).NotTo(Receive(), "it waits for the API server")
			lasted := time.Since(cut)
			asked := len(p.sent(cut, away))
			g.Expect(asked).To(BeNumerically("<", 30*lasted.Seconds()), "requests of an operator in %s without API server", lasted)
			reported = s.poke(g)
			p.away(false)
			mended = time.Now()
			g.Eventually(reported, patience).Should(Succeed())
			t.Logf("%s without the API server: %d requests, and what happened meanwhile was reported %s after its end",
				lasted.Round(time.Second), asked, time.Since(mended).Round(time.Second/10))
		})
	}
}

// TestKilled kills an operator as the kernel does that has no memory left. Its lease is of full length: nobody could wait for that.
func TestKilled(t *testing.T) {
	for _, o := range operators {
		t.Run("When "+o.program+" is killed it should be at work as soon as it has started again", func(t *testing.T) {
			t.Parallel()
			g, s := NewWithT(t), newScene(t, o)
			p := start(t, newLink(t, s.env), eager, "first", s.arguments()...)
			g.Eventually(s.poke(g), patience).Should(Succeed())
			g.Expect(p.Process.Kill()).To(Succeed())
			g.Eventually(p.ended, patience).Should(Receive())
			reported := s.poke(g)
			killed := time.Now()
			start(t, p.link, eager, "first", s.arguments()...)
			g.Eventually(reported, process.LeaseDuration*9/10).Should(Succeed())
			t.Logf("at work %s after it was killed", time.Since(killed).Round(time.Second/10))
		})
	}
}

// TestServerForgets replaces the API server by one that knows no history, so that every watch has to begin anew with a list.
func TestServerForgets(t *testing.T) {
	g := NewWithT(t)
	var scenes []*scene
	var programs []*program
	for _, o := range operators {
		s := newScene(t, o)
		scenes, programs = append(scenes, s), append(programs, start(t, newLink(t, s.env), eager, "first", s.arguments()...))
		g.Eventually(s.poke(g), patience).Should(Succeed())
	}
	env := scenes[0].env
	env.KillServer()
	env.Compact(t)
	env.RestartServer(t)
	for i, s := range scenes {
		t.Run("When "+s.program+" finds that its watches are too old it should go on with what is", func(t *testing.T) {
			g := NewWithT(t)
			g.Eventually(s.poke(g), patience).Should(Succeed())
			g.Expect(programs[i].ended).NotTo(Receive())
		})
	}
}

func away(r request) bool { return r.away }

// wait is for what has no end that could be seen: an outage that lasts.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// TestStandby has two Pods of an operator, as an installation with --replicas=2 does, with the lease that it gives them.
func TestStandby(t *testing.T) {
	leases := map[string]string{}
	for _, d := range deployed(2) {
		leases[d.Name] = leaseOf(d)
	}
	for _, o := range operators {
		if o.deployment == "" {
			continue
		}
		t.Run("When the leader of "+o.program+" stands still, is stopped or killed a standby should go on", func(t *testing.T) {
			g, s := NewWithT(t), newScene(t, o)
			t.Setenv(process.EnvLeaseDuration, leases[o.deployment])
			pods := map[string]*program{}
			for _, name := range []string{"a", "b", "c", "d"} {
				pods[name] = start(t, newLink(t, s.env), "", name, s.arguments()...)
			}
			for _, end := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGTERM, syscall.SIGKILL} {
				g.Eventually(s.poke(g), patience).Should(Succeed())
				leader := s.holder()
				g.Expect(pods).To(HaveKey(leader))
				was := pods[leader]
				delete(pods, leader)
				begun := time.Now()
				g.Expect(was.Process.Signal(end)).To(Succeed())
				if end != syscall.SIGSTOP {
					g.Eventually(was.ended, patience).Should(Receive())
				}
				// How soon is up to the machine; TestTakeover says what the lease allows.
				g.Eventually(s.poke(g), patience).Should(Succeed())
				t.Logf("%v: another works %s later", end, time.Since(begun).Round(time.Second/10))
				if end == syscall.SIGSTOP {
					taken := time.Now()
					g.Expect(was.Process.Signal(syscall.SIGCONT)).To(Succeed())
					var err error
					g.Eventually(was.ended, patience).Should(Receive(&err))
					g.Expect(err).To(HaveOccurred(), "kubelet starts what has failed anew")
					g.Expect(was.sent(taken, request.write)).To(BeEmpty(), "who stood still for longer than its lease writes nothing more")
				}
			}
		})
	}
}
