package process

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"hcp.internal/platform/internal/kube/hotloop"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// TestKilled has a lease that was renewed a moment ago, by a process that got no chance to let go of it.
func TestKilled(t *testing.T) {
	g, env := NewWithT(t), testenv.Start(t)
	ns := env.Namespace(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1") // as in every pod
	scheme := kubescheme.Scheme
	host, err := os.Hostname()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(env.Client(t, scheme).Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "operator"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(host), LeaseDurationSeconds: ptr.To(int32(LeaseDuration.Seconds())), RenewTime: ptr.To(metav1.NewMicroTime(time.Now())), AcquireTime: ptr.To(metav1.NewMicroTime(time.Now())),
	}})).To(Succeed())
	before := RetryPeriod
	RetryPeriod = time.Second // a request may be lost on a busy machine
	t.Cleanup(func() { RetryPeriod = before })
	mgr, err := NewManager(env.Config, Options{
		Scheme: scheme, Lease: NewLease(ns, "operator", ""), Serve: Serve{Metrics: "0"}, HotLoops: hotloop.New(scheme, clock.RealClock{}),
	})
	g.Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(t.Context()) }()
	g.Eventually(mgr.Elected()).Should(BeClosed(), "When a process was killed and started again in its pod it should go on at once")
}

// TestStop has something that does not end in time. It is told apart from what the library would allow by the time in the error.
func TestStop(t *testing.T) {
	for name, tc := range map[string]struct {
		stop time.Duration
		ends bool
	}{
		"When a process may take a while to stop it should wait that long for what it runs": {stop: time.Minute, ends: true},
		"When what it runs takes longer it should not wait for it":                          {stop: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			mgr, err := NewManager(testenv.Start(t).Config, Options{Scheme: kubescheme.Scheme, Serve: Serve{Metrics: "0"}, Stop: tc.stop})
			g.Expect(err).NotTo(HaveOccurred())
			begun, told, let := make(chan struct{}), make(chan struct{}), make(chan struct{})
			g.Expect(mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
				close(begun)
				<-ctx.Done()
				close(told)
				<-let
				return nil
			}))).To(Succeed())
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- mgr.Start(ctx) }()
			g.Eventually(begun).Should(BeClosed())
			stop()
			g.Eventually(told).Should(BeClosed())
			if tc.ends {
				g.Consistently(ended, time.Second).ShouldNot(Receive())
				close(let)
				g.Eventually(ended).Should(Receive(BeNil()))
				return
			}
			defer close(let)
			g.Eventually(ended).Should(Receive(MatchError(ContainSubstring("grace period of 50ms"))))
		})
	}
}
