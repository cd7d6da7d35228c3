package approver

import (
	"context"
	"crypto/x509"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func (w *world) reconciler(c ctrlclient.Client) *Reconciler {
	return &Reconciler{
		Management: c, Hosted: c, Clock: clocktesting.NewFakePassiveClock(time.Now()),
		Hold:  func(*hyperv1.HostedControlPlane, time.Time) (string, time.Duration) { return "", 0 },
		Watch: func() {},
	}
}

func (w *world) request() ctrl.Request {
	return ctrl.Request{NamespacedName: ctrlclient.ObjectKey{Namespace: w.ns, Name: "demo"}}
}

func TestOneCertificatePerMachine(t *testing.T) {
	t.Run("When two keys ask for one machine it should approve the first and leave the other to people", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.machine(t, "f-1", "10.244.0.12")
		first := w.askAsBootstrapper(t, requestPEM(t, named("f-1")))
		_, err := w.pass(t, w.client, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.verdict(t, first)).To(Equal("Approved/" + ReasonMachineMatches))

		// Kubernetes forgets approved requests after an hour; what is on the Machine stays.
		g.Expect(w.client.Delete(t.Context(), &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: first}})).To(Succeed())
		thief := w.askAsBootstrapper(t, requestPEM(t, named("f-1")))
		_, err = w.pass(t, w.client, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.verdict(t, thief)).To(BeEmpty())
		events := &corev1.EventList{}
		g.Expect(w.client.List(t.Context(), events, ctrlclient.InNamespace("default"), ctrlclient.MatchingFields{"involvedObject.name": thief})).To(Succeed())
		g.Expect(events.Items).To(HaveLen(1))
		g.Expect(events.Items[0].Reason).To(Equal(ReasonMachineHasKey))
	})
	t.Run("When two keys ask at once it should approve one of them", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.machine(t, "g-1", "10.244.0.13")
		a, b := w.askAsBootstrapper(t, requestPEM(t, named("g-1"))), w.askAsBootstrapper(t, requestPEM(t, named("g-1")))
		_, err := w.pass(t, w.client, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect([]string{w.verdict(t, a), w.verdict(t, b)}).To(ConsistOf("Approved/"+ReasonMachineMatches, ""))
	})
	t.Run("When the Machine changes between look and approval it should approve nothing until it has looked again", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.machine(t, "h-1", "10.244.0.14")
		name := w.askAsBootstrapper(t, requestPEM(t, named("h-1")))
		once := sync.Once{}
		racing := interceptor.NewClient(w.client, interceptor.Funcs{Patch: func(ctx context.Context, c ctrlclient.WithWatch, o ctrlclient.Object, p ctrlclient.Patch, opts ...ctrlclient.PatchOption) error {
			once.Do(func() {
				m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "h-1"}}
				g.Expect(c.Patch(ctx, m, ctrlclient.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+KeyAnnotation+`":"of another process"}}}`)))).To(Succeed())
			})
			return c.Patch(ctx, o, p, opts...)
		}})
		_, err := w.pass(t, racing, time.Now())
		g.Expect(err).To(MatchError(ContainSubstring("noting the key of Machine h-1")))
		_, err = w.pass(t, racing, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.verdict(t, name)).To(BeEmpty())
	})
}

func TestUnmanaged(t *testing.T) {
	for name, change := range map[string]func(*hyperv1.HostedControlPlane){
		"When machines are managed elsewhere it should leave every request to people": func(h *hyperv1.HostedControlPlane) {
			h.Annotations = map[string]string{hyperv1.DisableMachineManagement: ""}
		},
		"When the platform has no machines it should leave every request to people": func(h *hyperv1.HostedControlPlane) {
			h.Spec.Platform.Type = hyperv1.NonePlatform
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t)
			w.machine(t, "i-1", "10.244.0.15")
			hcp := &hyperv1.HostedControlPlane{}
			g.Expect(w.client.Get(t.Context(), w.request().NamespacedName, hcp)).To(Succeed())
			change(hcp)
			good := w.askAsBootstrapper(t, requestPEM(t, named("i-1")))
			bad := w.askAsBootstrapper(t, requestPEM(t, named("i-1"), func(c *x509.CertificateRequest) { c.DNSNames = []string{"x"} }))
			r := w.reconciler(interceptor.NewClient(w.client, interceptor.Funcs{
				Get: func(ctx context.Context, c ctrlclient.WithWatch, key ctrlclient.ObjectKey, o ctrlclient.Object, opts ...ctrlclient.GetOption) error {
					hcp.DeepCopyInto(o.(*hyperv1.HostedControlPlane))
					return nil
				},
				List: func(context.Context, ctrlclient.WithWatch, ctrlclient.ObjectList, ...ctrlclient.ListOption) error {
					t.Error("it reads")
					return nil
				},
			}))
			r.Watch = func() { t.Error("it watches") }
			result, err := r.Reconcile(t.Context(), w.request())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result).To(Equal(ctrl.Result{}))
			g.Expect(w.verdict(t, good)).To(BeEmpty())
			g.Expect(w.verdict(t, bad)).To(BeEmpty())
		})
	}
}

// A tenant can keep thousands of requests that are decided: each stays for an hour.
func TestManyDenied(t *testing.T) {
	t.Run("When 2,000 denied requests come first by name it should still find the machine's", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.machine(t, "j-1", "10.244.0.16")
		w.deny(t, maxRequests+pageSize)
		name := w.askAsBootstrapper(t, requestPEM(t, named("j-1"))) // csr-…
		r := w.reconciler(w.client)
		result, err := r.Reconcile(t.Context(), w.request())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(breath))
		g.Expect(w.verdict(t, name)).To(BeEmpty(), "it is past what one pass reads")
		result, err = r.Reconcile(t.Context(), w.request())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(BeZero())
		g.Expect(w.verdict(t, name)).To(Equal("Approved/" + ReasonMachineMatches))

		late := w.askAsNode(t, "j-1", requestPEM(t, named("j-1", "10.244.0.16")))
		_, err = r.Reconcile(t.Context(), w.request())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.verdict(t, late)).To(Equal("Approved/"+ReasonMachineMatches), "requests for other signers don't stand before it")
	})
}

// deny makes n denied requests with names that come before those of kubelets.
func (w *world) deny(t testing.TB, n int) {
	t.Helper()
	cfg := rest.CopyConfig(w.env.Config)
	cfg.QPS = -1
	c, err := ctrlclient.New(cfg, ctrlclient.Options{Scheme: w.scheme})
	if err != nil {
		t.Fatal(err)
	}
	request := requestPEM(t, named("j-1"))
	work := make(chan int)
	var done sync.WaitGroup
	for range 16 {
		done.Go(func() {
			for i := range work {
				csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a-%05d", i)}}
				csr.Spec = certificatesv1.CertificateSigningRequestSpec{
					Request: request, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
					Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
				}
				err := c.Create(t.Context(), csr)
				if err == nil {
					csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "Test"}}
					err = c.SubResource("approval").Update(t.Context(), csr)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	done.Wait()
	t.Cleanup(func() {
		if err := c.DeleteAllOf(context.WithoutCancel(t.Context()), &certificatesv1.CertificateSigningRequest{}); err != nil {
			t.Error(err)
		}
	})
}
