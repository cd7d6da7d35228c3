package hostedcluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/autoscaler"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/configoperator/approver"
	"hcp.internal/platform/internal/hostedcluster/migration"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/nodepool/machines"
)

// programs are those of a control plane that change machines and approve certificates: the autoscaler and the approver themselves. One API server
// is the management cluster and the hosted cluster.
type programs struct {
	*movable
	direct, behind client.WithWatch    // as a program without and with the proxy in its pod sees the management cluster
	asked          map[string]string   // requests for certificates: their names in the API, by what they are
	seen           map[string][]string // by phase, what became of all that was asked for, each time that a phase began
	log            *told
}

func newPrograms(t testing.TB, n int) *programs {
	t.Helper()
	g := NewWithT(t)
	p := &programs{movable: newMovable(t, n), asked: map[string]string{}, seen: map[string][]string{}, log: &told{}}
	scheme := runtime.NewScheme()
	g.Expect(errors.Join(clientgoscheme.AddToScheme(scheme), hyperv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme))).To(Succeed())
	p.direct = p.env.Client(t, scheme)
	cfg, _ := p.behindProxy(t)
	var err error
	p.behind, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "nodes-of-" + p.ns}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: bootstrapper}, {APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:nodes"}}}
	g.Expect(p.direct.Create(t.Context(), binding)).To(Succeed())
	t.Cleanup(func() { // others look at the same API server
		ctx := context.WithoutCancel(t.Context())
		_ = p.direct.Delete(ctx, binding)
		_ = p.direct.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(p.ns))
		for _, name := range p.asked {
			_ = p.direct.Delete(ctx, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	})
	// The autoscaler may size the pool; the first machine has joined, the others have not.
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.hcp, Name: "workers"}}
	sizes := patch.Metadata{Annotations: map[string]*string{machines.MinSizeAnnotation: ptr.To(fmt.Sprint(n)), machines.MaxSizeAnnotation: ptr.To(fmt.Sprint(n + 1)),
		machines.CPUAnnotation: ptr.To("2"), machines.MemoryAnnotation: ptr.To("4096")}}
	g.Expect(p.direct.Patch(t.Context(), md, sizes.Patch())).To(Succeed())
	md.Status.ObservedGeneration = md.Generation
	g.Expect(p.direct.Status().Update(t.Context(), md)).To(Succeed())
	for i := range n {
		m := &clusterv1.Machine{}
		g.Expect(p.direct.Get(t.Context(), client.ObjectKey{Namespace: p.hcp, Name: fmt.Sprintf("workers-x7-%03d", i)}, m)).To(Succeed())
		m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: fmt.Sprint("10.244.7.", i)}}
		if i > 0 {
			m.Status.NodeRef = clusterv1.MachineNodeReference{}
		}
		g.Expect(p.direct.Status().Update(t.Context(), m)).To(Succeed())
	}
	return p
}

// run lets those programs work that have a replica, with the view of the management cluster that the control-plane-operator would deploy them with.
func (p *programs) run(ctx context.Context) error {
	hcp, list := &hyperv1.HostedControlPlane{}, &appsv1.DeploymentList{}
	if err := errors.Join(p.direct.Get(ctx, client.ObjectKey{Namespace: p.hcp, Name: "demo"}, hcp), p.direct.List(ctx, list, client.InNamespace(p.hcp))); err != nil {
		return err
	}
	management := p.direct
	if hcp.Annotations[privateKey] == "true" {
		management = p.behind
	}
	for _, d := range list.Items {
		if ptr.Deref(d.Spec.Replicas, 1) == 0 {
			continue
		}
		var err error
		switch d.Name {
		case "hosted-cluster-config-operator":
			err = p.approve(ctx, management)
		case autoscaler.Name:
			loop := &autoscaler.Loop{Management: management, Hosted: p.direct, Namespace: p.hcp, Options: autoscaler.Defaults(), Clock: clock.RealClock{}, ManagementEvents: p.log, HostedEvents: p.log}
			err = loop.Pass(ctx)
		}
		if err != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	return nil
}

func (p *programs) approve(ctx context.Context, management client.Client) error {
	r := &approver.Reconciler{Management: management, Hosted: p.direct, Clock: clock.RealClock{}, Watch: func() {},
		Hold: func(*hyperv1.HostedControlPlane, time.Time) (string, time.Duration) { return "", 0 }}
	_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: p.hcp, Name: "demo"}})
	return err
}

// bootstrapper is who a machine is until it has a certificate.
const bootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"

// ask makes a request for a certificate: a first one if no address is given, else one to serve with.
func (p *programs) ask(t testing.TB, what, organization, node, address string) {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{organization}}}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"}, Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}}}
	cfg := rest.CopyConfig(p.env.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: bootstrapper, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"}}
	if address != "" {
		template.IPAddresses = []net.IP{net.ParseIP(address)}
		csr.Spec.SignerName, csr.Spec.Usages[1] = certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth
		cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"}}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	g.Expect(err).NotTo(HaveOccurred())
	csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	c, err := client.New(cfg, client.Options{Scheme: p.direct.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Create(t.Context(), csr)).To(Succeed())
	p.asked[what] = csr.Name
}

// crowd makes pods for which all machines that there are, and one more, are needed.
func (p *programs) crowd(t testing.TB, n int) {
	t.Helper()
	for i := range n {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: fmt.Sprint("waits-", i)}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{hyperv1.NodePoolLabel: "workers"}, // no node that somebody else made
			Containers:   []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}}}},
		}}
		NewWithT(t).Expect(p.direct.Create(t.Context(), pod)).To(Succeed())
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		NewWithT(t).Expect(p.direct.Status().Update(t.Context(), pod)).To(Succeed())
	}
}

// verdict is what became of a request: empty while it is pending.
func (p *programs) verdict(t testing.TB, what string) string {
	t.Helper()
	csr := &certificatesv1.CertificateSigningRequest{}
	NewWithT(t).Expect(p.direct.Get(t.Context(), client.ObjectKey{Name: p.asked[what]}, csr)).To(Succeed())
	var all []string
	for _, c := range csr.Status.Conditions {
		all = append(all, string(c.Type)+"/"+c.Reason)
	}
	return strings.Join(all, ",")
}

// size is how many machines a group's MachineDeployment asks for; below 0: it isn't there.
func (p *programs) size(t testing.TB, group string) int64 {
	t.Helper()
	md := unstructuredOf(group, "v1beta2", "MachineDeployment")
	err := p.direct.Get(t.Context(), client.ObjectKey{Namespace: p.hcp, Name: "workers"}, md)
	if apierrors.IsNotFound(err) {
		return -1
	}
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return md.Object["spec"].(map[string]any)["replicas"].(int64)
}

// outcome is what became of everything that was asked for.
func (p *programs) outcome(t testing.TB) string {
	return fmt.Sprintf("%q %q %q, %d standard, %d private", p.verdict(t, "serving"), p.verdict(t, "first"), p.verdict(t, "masters"), p.size(t, translate.Standard), p.size(t, translate.Private))
}

// hooked calls begun whenever it was noted that a phase begins, and lets the programs work then.
func (p *programs) hooked(t testing.TB, begun func(migration.Phase)) client.WithWatch {
	return interceptor.NewClient(p.client, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			err := c.Update(ctx, obj, opts...)
			cm, ok := obj.(*corev1.ConfigMap)
			if err != nil || !ok || cm.Name != migration.JournalName {
				return err
			}
			j := migration.Journal{}
			if err := json.Unmarshal([]byte(cm.Data["journal"]), &j); err != nil {
				return err
			}
			begun(j.Phase)
			if err := p.run(ctx); err != nil {
				t.Errorf("in phase %s: %v", j.Phase, err)
			}
			if len(p.asked) > 1 {
				p.seen[string(j.Phase)] = append(p.seen[string(j.Phase)], p.outcome(t))
			}
			return nil
		},
	})
}

// heard are the reasons of events, by the kind of what they are about.
type heard map[string][]string

// Eventf implements events.Recorder.
func (h heard) Eventf(regarding, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", regarding), "*v1beta1.")
	h[kind] = append(h[kind], reason)
}

// TestMigrationPrograms is about what machines and pods ask for while a hosted cluster is moved.
func TestMigrationPrograms(t *testing.T) {
	const n, matches = 3, "Approved/" + approver.ReasonMachineMatches
	for name, tc := range map[string]struct {
		group, reason string
		takeBack      bool
	}{
		"When it is moved, what is asked for in the middle should wait until the programs work with private types":    {group: translate.Private, reason: "Completed"},
		"When it is taken back, what is asked for in the middle should wait until the programs are back as they were": {group: translate.Standard, reason: "RolledBack", takeBack: true},
	} {
		t.Run(name, func(t *testing.T) {
			g, ctx := NewWithT(t), t.Context()
			p := newPrograms(t, n)
			standard, pods := p.state(t, translate.Standard), p.pods(t)
			p.ask(t, "before", "system:nodes", "workers-x7-002", "")
			g.Expect(p.run(ctx)).To(Succeed())
			g.Expect(p.verdict(t, "before")).To(Equal(matches))
			c := p.hooked(t, func(phase migration.Phase) {
				switch {
				case phase == migration.Copy:
					p.ask(t, "serving", "system:nodes", "workers-x7-000", "10.244.7.0")
					p.ask(t, "first", "system:nodes", "workers-x7-001", "")
					p.ask(t, "second", "system:nodes", "workers-x7-002", "")
					p.ask(t, "stranger", "system:nodes", "nobody", "")
					p.ask(t, "masters", "system:masters", "workers-x7-001", "")
					p.crowd(t, n+1)
				case phase == migration.Commit && tc.takeBack:
					g.Expect(p.client.Patch(ctx, p.hostedCluster(), patch.Annotation(hyperv1.PrivateCAPIRollbackAnnotation, ptr.To("true")))).To(Succeed())
				}
			})
			mover, heard := p.mover(c), heard{}
			mover.Events = heard
			g.Expect(p.migrate(ctx, mover, hyperv1.PrivateCAPIMigrateAnnotation)).To(Succeed())

			g.Expect(heard["HostedCluster"]).To(ContainElements("PrivateCAPIMigrationStarted", "PrivateCAPIMigrationPhaseCompleted", "PrivateCAPIMigration"+tc.reason))
			g.Expect(heard["HostedControlPlane"]).To(Equal(heard["HostedCluster"]))
			g.Expect(p.seen["Copy"]).To(Equal([]string{`"" "" "", 3 standard, -1 private`}))
			for _, phase := range []migration.Phase{migration.Repoint, migration.Verify, migration.Switch, migration.Commit} {
				g.Expect(p.seen[string(phase)]).To(Equal([]string{`"" "" "", 3 standard, 3 private`}), phase)
			}
			if !tc.takeBack {
				for _, phase := range []migration.Phase{migration.ScaleUp, migration.Available} { // nothing runs yet
					g.Expect(p.seen[string(phase)]).To(Equal([]string{`"" "" "", 3 standard, 3 private`}), phase)
				}
			}
			g.Expect(p.runDeployments(ctx)).To(Succeed())
			g.Expect(p.run(ctx)).To(Succeed())
			p.expectWhole(t, tc.group, standard, pods, tc.reason)
			g.Expect(p.size(t, tc.group)).To(BeEquivalentTo(n+1), "%v\n%v", p.seen, *p.log)
			g.Expect(p.size(t, translate.Group(tc.group))).To(BeEquivalentTo(-1))
			for what, verdict := range map[string]string{"serving": matches, "first": matches, "second": "", "stranger": "", "masters": "Denied/" + approver.ReasonSubject} {
				g.Expect(p.verdict(t, what)).To(Equal(verdict), what)
			}
			for machine, keyed := range map[string]bool{"workers-x7-000": false, "workers-x7-001": true, "workers-x7-002": true} {
				u := unstructuredOf(tc.group, "v1beta2", "Machine")
				g.Expect(p.direct.Get(ctx, client.ObjectKey{Namespace: p.hcp, Name: machine}, u)).To(Succeed())
				g.Expect(u.GetAnnotations()[approver.KeyAnnotation] != "").To(Equal(keyed), machine)
			}
		})
	}
}

// TestMigrationLookingElsewhere is about a program that has the wrong view of the management cluster.
func TestMigrationLookingElsewhere(t *testing.T) {
	t.Run("When an approver still looks for standard types after the move requests should stay pending for one that looks for private ones", func(t *testing.T) {
		g, ctx := NewWithT(t), t.Context()
		p := newPrograms(t, 2)
		g.Expect(p.migrate(ctx, p.mover(p.client), hyperv1.PrivateCAPIMigrateAnnotation)).To(Succeed())
		p.ask(t, "serving", "system:nodes", "workers-x7-000", "10.244.7.0")
		p.ask(t, "first", "system:nodes", "workers-x7-001", "")
		g.Expect(p.approve(ctx, p.direct)).To(Succeed())
		g.Expect(p.verdict(t, "serving") + p.verdict(t, "first")).To(BeEmpty())
		g.Expect(p.approve(ctx, p.behind)).To(Succeed())
		g.Expect(p.verdict(t, "serving")).To(HavePrefix("Approved/"))
		g.Expect(p.verdict(t, "first")).To(HavePrefix("Approved/"))
	})
	t.Run("When a pod of the autoscaler does not end nothing should be copied before it is gone", func(t *testing.T) {
		g, ctx := NewWithT(t), t.Context()
		p := newPrograms(t, 1)
		lingering := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.hcp, Name: "lingering", Labels: map[string]string{"name": autoscaler.Name}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		g.Expect(p.direct.Create(ctx, lingering)).To(Succeed())
		g.Expect(p.client.Patch(ctx, p.hostedCluster(), patch.Annotation(hyperv1.PrivateCAPIMigrateAnnotation, ptr.To("true")))).To(Succeed())
		c := p.mover(p.client)
		step := func(g Gomega) {
			g.Expect(client.IgnoreNotFound(p.turn(ctx))).To(Succeed())
			_, err := c.Reconcile(ctx, p.request("demo"))
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Eventually(func(g Gomega) {
			step(g)
			g.Expect(p.message(ctx, "demo", hyperv1.PrivateCAPIMigrationProgressing)).To(HaveSuffix("waiting for the end of cluster-autoscaler"))
		}, patience, often).Should(Succeed())
		for range 3 {
			step(g)
		}
		g.Expect(p.condition(ctx, "demo", hyperv1.PrivateCAPIMigrationProgressing)()).To(Equal("True/ScaleDown"))
		g.Expect(p.state(t, translate.Private)).To(BeEmpty())
		g.Expect(p.direct.Delete(ctx, lingering, client.GracePeriodSeconds(0))).To(Succeed())
		g.Expect(p.migrate(ctx, c, "")).To(Succeed())
		g.Expect(p.condition(ctx, "demo", hyperv1.PrivateCAPIMigrationProgressing)()).To(Equal("False/Completed"))
	})
}
