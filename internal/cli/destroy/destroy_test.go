package destroy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// fixture is a cluster with a control-plane namespace, held by an operator that the test plays.
type fixture struct {
	client.WithWatch
	t    *testing.T
	key  client.ObjectKey
	hcp  *hyperv1.HostedControlPlane
	opts Options
	// infraID is of this cluster alone: all fixtures are in one management cluster.
	infraID string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	env := testenv.Start(t)
	env.StartControllers(t)
	namespace := env.Namespace(t)
	f := &fixture{WithWatch: env.Client(t, connect.Scheme()), t: t, infraID: strings.Replace(namespace, "test", "demo", 1)}
	f.key = client.ObjectKey{Namespace: namespace, Name: "demo"}
	f.opts = NewOptions()
	f.opts.Name, f.opts.Namespace, f.opts.GracePeriod, f.opts.forceWait = f.key.Name, f.key.Namespace, time.Minute, 20*time.Second

	g := NewWithT(t)
	o := create.NewOptions(hyperv1.LocalPlatform)
	o.Name, o.Namespace, o.ReleaseImage = "demo", namespace, "registry.example.com/release:1"
	generated := create.Generated{InfraID: f.infraID, EncryptionKey: make([]byte, 32), SSHPublic: []byte("key")}
	for _, obj := range create.Objects(o, generated) {
		if obj.GetName() == namespace {
			continue
		}
		if obj.GetName() == f.key.Name {
			obj.SetFinalizers([]string{hyperv1.HostedClusterFinalizer})
		}
		g.Expect(f.Create(t.Context(), obj)).To(Succeed())
	}
	plane := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:        names.ControlPlaneNamespace(namespace, "demo"),
		Annotations: map[string]string{hyperv1.HostedClusterAnnotation: namespace + "/demo"},
	}}
	g.Expect(f.Create(t.Context(), plane)).To(Succeed())
	f.hcp = &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: plane.Name, Name: "demo", Finalizers: []string{hyperv1.HostedControlPlaneFinalizer}},
		Spec: hyperv1.HostedControlPlaneSpec{
			ReleaseImage: "registry.example.com/release:1", InfraID: f.infraID, IssuerURL: "https://kubernetes.default.svc",
			Platform: hyperv1.PlatformSpec{Type: hyperv1.NonePlatform}, PullSecret: corev1.LocalObjectReference{Name: "pull-secret"},
			SSHKey: corev1.LocalObjectReference{Name: "ssh-key"},
		},
	}
	hc := f.get(g)
	f.hcp.Spec.Services, f.hcp.Spec.Etcd, f.hcp.Spec.Networking, f.hcp.Spec.DNS = hc.Spec.Services, hc.Spec.Etcd, hc.Spec.Networking, hc.Spec.DNS
	g.Expect(f.Create(t.Context(), f.hcp)).To(Succeed())
	return f
}

func (f *fixture) get(g Gomega) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{}
	g.Expect(f.Get(f.t.Context(), f.key, hc)).To(Succeed())
	return hc
}

// operator lets go of a deleted cluster as the real operator does: control plane, namespace, then the cluster itself.
func (f *fixture) operator(ctx context.Context) {
	for ctx.Err() == nil {
		hc := &hyperv1.HostedCluster{}
		if f.Get(ctx, f.key, hc) == nil && !hc.DeletionTimestamp.IsZero() && f.drained(ctx) {
			_ = patch.RemoveFinalizer(ctx, f, hc, hyperv1.HostedClusterFinalizer)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (f *fixture) drained(ctx context.Context) bool {
	hcp := &hyperv1.HostedControlPlane{}
	if f.Get(ctx, client.ObjectKeyFromObject(f.hcp), hcp) == nil {
		_ = f.Delete(ctx, hcp)
		_ = patch.RemoveFinalizer(ctx, f, hcp, hyperv1.HostedControlPlaneFinalizer)
	}
	namespace := &corev1.Namespace{}
	if err := f.Get(ctx, client.ObjectKey{Name: f.hcp.Namespace}, namespace); apierrors.IsNotFound(err) {
		return true
	}
	_ = f.Delete(ctx, namespace)
	return false
}

func (f *fixture) expectGone(g Gomega) {
	g.Expect(apierrors.IsNotFound(f.Get(f.t.Context(), f.key, &hyperv1.HostedCluster{}))).To(BeTrue(), "HostedCluster")
	secrets := &corev1.SecretList{}
	g.Expect(f.List(f.t.Context(), secrets, client.InNamespace(f.key.Namespace))).To(Succeed())
	g.Expect(secrets.Items).To(BeEmpty())
}

func TestDestroy(t *testing.T) {
	t.Run("When the operator does its part it should leave nothing and say what it waited for", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		f := newFixture(t)
		go f.operator(t.Context())
		f.opts.CloudResources = true
		var out bytes.Buffer
		g.Expect(cluster(t.Context(), f.opts, f, &out)).To(Succeed())
		f.expectGone(g)
		g.Expect(out.String()).To(And(ContainSubstring("deleting HostedCluster"), ContainSubstring("is destroyed")))
		g.Expect(strings.Count(out.String(), "deleted Secret")).To(Equal(3))
	})

	t.Run("When it is only a preview it should list what would go, and change nothing", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		f := newFixture(t)
		f.opts.Connect.DryRun = connect.DryRunClient
		before := f.get(g)
		var out bytes.Buffer
		g.Expect(cluster(t.Context(), f.opts, f, &out)).To(Succeed())
		ns := f.key.Namespace
		g.Expect(out.String()).To(And(
			HavePrefix("Would be deleted:\n  HostedCluster "+ns+"/demo (release registry.example.com/release:1, not available)\n"),
			ContainSubstring("Namespace "+f.hcp.Namespace+" with everything in it, 0 Pods"),
			ContainSubstring("Secret "+ns+"/demo-etcd-encryption-key"), HaveSuffix("Nothing has been changed.\n")))
		g.Expect(f.get(g)).To(BeComparableTo(before))
	})

	t.Run("When it is protected it should change nothing and say how the protection is removed", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		f := newFixture(t)
		hc := f.get(g)
		hc.Annotations = map[string]string{hyperv1.DeleteProtectionAnnotation: "true"}
		g.Expect(f.Update(t.Context(), hc)).To(Succeed())
		before := f.get(g)
		f.opts.Force = true
		for _, dry := range []connect.DryRun{connect.NoDryRun, connect.DryRunClient} {
			var out bytes.Buffer
			f.opts.Connect.DryRun = dry
			err := cluster(t.Context(), f.opts, f, &out)
			g.Expect(exit.Code(err)).To(Equal(exit.Held))
			g.Expect(err).To(MatchError(ContainSubstring("kubectl annotate hostedcluster demo -n " + f.key.Namespace + " " + hyperv1.DeleteProtectionAnnotation + "-")))
			g.Expect(out.String() != "").To(Equal(dry == connect.DryRunClient), "a preview still lists")
		}
		g.Expect(f.get(g)).To(BeComparableTo(before))
	})

	t.Run("When it is interrupted and run again it should finish", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		f := newFixture(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for f.get(g).DeletionTimestamp.IsZero() {
				time.Sleep(20 * time.Millisecond)
			}
			cancel()
		}()
		var out bytes.Buffer
		g.Expect(cluster(ctx, f.opts, f, &out)).To(MatchError(context.Canceled))
		g.Expect(f.get(g).Finalizers).To(ConsistOf(hyperv1.HostedClusterFinalizer, Finalizer))
		go f.operator(t.Context())
		g.Expect(cluster(t.Context(), f.opts, f, &out)).To(Succeed())
		f.expectGone(g)
	})

	t.Run("When the operator is dead it should say what holds the cluster and how to go on", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		f := newFixture(t)
		f.opts.GracePeriod = 5 * time.Second // a look takes a while on a machine that is busy
		var out bytes.Buffer
		err := cluster(t.Context(), f.opts, f, &out)
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
		g.Expect(err).To(MatchError(And(ContainSubstring("HostedControlPlane "+f.hcp.Namespace+"/demo"), ContainSubstring("--force"))))
	})

	t.Run("When the operator is dead and force is given it should take finalizers off", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		f := newFixture(t)
		f.opts.GracePeriod, f.opts.forceWait, f.opts.Force = 500*time.Millisecond, 2*time.Second, true
		var out bytes.Buffer
		g.Expect(cluster(t.Context(), f.opts, f, &out)).To(Succeed())
		f.expectGone(g)
		g.Expect(out.String()).To(ContainSubstring("off HostedControlPlane"))
		g.Eventually(func() bool {
			return apierrors.IsNotFound(f.Get(t.Context(), client.ObjectKey{Name: f.hcp.Namespace}, &corev1.Namespace{}))
		}, "20s", "100ms").Should(BeTrue(), "the control-plane namespace goes")
	})

	t.Run("When the namespace belongs to another cluster force should leave it alone", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		f := newFixture(t)
		plane := &corev1.Namespace{}
		g.Expect(f.Get(t.Context(), client.ObjectKey{Name: f.hcp.Namespace}, plane)).To(Succeed())
		plane.Annotations[hyperv1.HostedClusterAnnotation] = "other/cluster"
		g.Expect(f.Update(t.Context(), plane)).To(Succeed())
		f.opts.GracePeriod, f.opts.forceWait, f.opts.Force = 500*time.Millisecond, time.Second, true
		var out bytes.Buffer
		g.Expect(cluster(t.Context(), f.opts, f, &out)).To(Succeed())
		f.expectGone(g)
		g.Expect(f.Get(t.Context(), client.ObjectKey{Name: f.hcp.Namespace}, plane)).To(Succeed())
		g.Expect(plane.DeletionTimestamp.IsZero()).To(BeTrue())
		g.Expect(f.Get(t.Context(), client.ObjectKeyFromObject(f.hcp), &hyperv1.HostedControlPlane{})).To(Succeed())
	})

	t.Run("When there is no such cluster it should say so, and clean up with an infrastructure id that none has", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		f := newFixture(t)
		left := f.secret("left", "gone-abcde")
		g.Expect(f.Create(t.Context(), left)).To(Succeed())
		var out bytes.Buffer
		o := f.opts
		o.Name = "other"
		err := cluster(t.Context(), o, f, &out)
		g.Expect(errors.Is(err, ErrNotFound)).To(BeTrue())
		g.Expect(err).To(MatchError(ContainSubstring("--infra-id")))
		o.InfraID = "gone-abcde"
		g.Expect(cluster(t.Context(), o, f, &out)).To(Succeed())
		g.Expect(strings.Count(out.String(), "deleted Secret")).To(Equal(1))
		g.Expect(apierrors.IsNotFound(f.Get(t.Context(), client.ObjectKeyFromObject(left), left))).To(BeTrue())
		f.get(g) // still there
	})
}

// secret is one that `create cluster` made for an infrastructure.
func (f *fixture) secret(name, infraID string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.key.Namespace, Name: name,
		Labels: map[string]string{create.SafeToDeleteLabel: "true", create.AutoCreatedForLabel: infraID}}}
}

// Whoever mistypes a name, or is in another namespace, must not destroy what a cluster lives on.
func TestInfraOfAnother(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		funcs  interceptor.Funcs
		want   []string
	}{
		"When the name is wrong it should name the cluster that has the infrastructure": {
			change: func(o *Options) { o.Name, o.InfraID = "other", "INFRA" }, want: []string{"infrastructure INFRA", "HostedCluster NS/demo", "it still exists"}},
		"When the namespace is wrong it should name the cluster that has the infrastructure": {
			change: func(o *Options) { o.Namespace, o.InfraID = "default", "INFRA" }, want: []string{"infrastructure INFRA", "HostedCluster NS/demo"}},
		"When the cluster has another infrastructure it should say which": {
			change: func(o *Options) { o.InfraID = "other-abcde" }, want: []string{"HostedCluster NS/demo has infrastructure INFRA", "--infra-id other-abcde"}},
		"When nobody may say which cluster has the infrastructure it should say what to do": {
			change: func(o *Options) { o.Name, o.InfraID = "other", "gone-abcde" },
			funcs: interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*hyperv1.HostedClusterList); ok {
					return apierrors.NewForbidden(hyperv1.GroupVersion.WithResource("hostedclusters").GroupResource(), "", nil)
				}
				return c.List(ctx, list, opts...)
			}},
			want: []string{"forbidden", "list HostedClusters in all namespaces", "kubectl delete secrets -n NS -l", create.AutoCreatedForLabel + "=gone-abcde"}},
	} {
		for _, dry := range []connect.DryRun{connect.NoDryRun, connect.DryRunClient} {
			t.Run(fmt.Sprintf("%s, and change nothing (dry run %q)", name, dry), func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				f := newFixture(t)
				left := f.secret("left", "gone-abcde")
				g.Expect(f.Create(t.Context(), left)).To(Succeed())
				before := f.get(g)
				tc.change(&f.opts)
				named := strings.NewReplacer("NS", f.key.Namespace, "INFRA", f.infraID)
				f.opts.InfraID = named.Replace(f.opts.InfraID)
				f.opts.Connect.DryRun = dry
				var out bytes.Buffer
				err := cluster(t.Context(), f.opts, interceptor.NewClient(f, tc.funcs), &out)
				for _, want := range tc.want {
					g.Expect(err).To(MatchError(ContainSubstring(named.Replace(want))))
				}
				g.Expect(out.String()).To(BeEmpty())
				g.Expect(f.get(g)).To(BeComparableTo(before))
				secrets := &corev1.SecretList{}
				g.Expect(f.List(t.Context(), secrets, client.InNamespace(f.key.Namespace))).To(Succeed())
				g.Expect(secrets.Items).To(HaveLen(4))
			})
		}
	}
}

func TestDestroyInterrupted(t *testing.T) {
	t.Parallel()
	// Finalizer, annotation, delete, three Secrets, finalizer off: seven writes.
	for n := 1; n <= 7; n++ {
		t.Run(fmt.Sprintf("When it dies at write %d and is run again it should finish", n), func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			f := newFixture(t)
			f.opts.CloudResources = true
			go f.operator(t.Context())
			broken := testenv.NewFaultClient(f, testenv.Crash, n)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { // a dead process doesn't wait either
				for !broken.Fired() && ctx.Err() == nil {
					time.Sleep(20 * time.Millisecond)
				}
				cancel()
			}()
			var out bytes.Buffer
			g.Expect(cluster(ctx, f.opts, broken, &out)).NotTo(Succeed())
			g.Expect(broken.Fired()).To(BeTrue())
			err := cluster(t.Context(), f.opts, f, &out)
			if !errors.Is(err, ErrNotFound) { // when it died after its last write
				g.Expect(err).NotTo(HaveOccurred(), out.String())
			}
			f.expectGone(g)
		})
	}
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{Finalizer, "x/y"}}}
	g.Expect(leftovers{hc: hc}.String()).To(Equal("finalizers x/y"))
	hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.CloudResourcesDestroyed, Status: metav1.ConditionFalse, Reason: "RemainingCloudResources", Message: "2 volumes"}}
	left := leftovers{
		hc: hc, nodePools: []string{"b", "a"},
		hcp: &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}},
		namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{
			{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "1 pod"},
			{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionFalse, Message: "no"},
		}}},
	}
	g.Expect(left.String()).To(Equal("NodePools a, b; HostedControlPlane n/c (RemainingCloudResources: 2 volumes); Namespace n (1 pod)"))
}
