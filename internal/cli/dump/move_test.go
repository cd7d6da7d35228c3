package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/migration"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/testenv"
)

const (
	standardGroup, privateGroup = "cluster.x-k8s.io", "cluster.hypershift.openshift.io"
	// longest is how long a move may take to end, on a machine that builds other things, too.
	longest, often = 3 * time.Minute, 50 * time.Millisecond
)

// moving is a move of a hosted cluster, with nothing to deploy: each time that programs would be, it calls look.
type moving struct {
	env  *testenv.Env
	c    client.WithWatch
	ns   string
	look func(ctx context.Context)
}

// Deploy implements migration.Deployer.
func (m *moving) Deploy(ctx context.Context, _ *hyperv1.HostedCluster, _, awake bool) error {
	if !awake {
		m.look(ctx) // all copies are made, and none of the objects has gone
	}
	return nil
}

// Speaks implements migration.Deployer.
func (m *moving) Speaks(context.Context, *hyperv1.HostedCluster) error { return nil }

func newMoving(t *testing.T) *moving {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	scheme := runtime.NewScheme()
	g.Expect(errors.Join(clientgoscheme.AddToScheme(scheme), hyperv1.AddToScheme(scheme))).To(Succeed())
	m := &moving{env: testenv.Start(t)}
	m.env.InstallPrivateCAPI(t)
	m.c, m.ns = m.env.Client(t, scheme), m.env.Namespace(t)
	labels := map[string]string{"app": migration.LegacyDeployment}
	legacy := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: migration.LegacyDeployment}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Image: "i"}}}},
	}}
	hc := testenv.HostedCluster(m.ns, "demo")
	hc.Annotations = map[string]string{hyperv1.HostedClusterScopeAnnotation: hyperv1.LegacyScope, hyperv1.PrivateCAPIMigrateAnnotation: "true"}
	object := func(kind, name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": standardGroup + "/v1beta2", "kind": kind, "metadata": map[string]any{"namespace": m.ns + "-demo", "name": name}, "spec": spec}}
	}
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: migration.StateName}}, legacy, hc,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.ns + "-demo"}},
		object("Cluster", "demo-x", map[string]any{"infrastructureRef": map[string]any{"apiGroup": "infrastructure." + standardGroup, "kind": "LocalCluster", "name": "demo"}}),
		object("Machine", "worker-a", map[string]any{"clusterName": "demo-x", "bootstrap": map[string]any{"dataSecretName": "user-data"},
			"infrastructureRef": map[string]any{"apiGroup": "infrastructure." + standardGroup, "kind": "LocalMachine", "name": "worker-a"}}),
	} {
		g.Expect(m.c.Create(ctx, o)).To(Succeed())
	}
	legacy.Status.Replicas, legacy.Status.ReadyReplicas, legacy.Status.AvailableReplicas = 1, 1, 1
	g.Expect(m.c.Status().Update(ctx, legacy)).To(Succeed())
	return m
}

// finish moves the hosted cluster to the end.
func (m *moving) finish(t *testing.T) {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	disco, err := discovery.NewDiscoveryClientForConfig(m.env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	controller := &migration.Controller{Direct: m.c, Cached: m.c, Discovery: disco, Deployer: m, Clock: clock.RealClock{}, Namespace: m.ns}
	hc := &hyperv1.HostedCluster{}
	key := client.ObjectKey{Namespace: m.ns, Name: "demo"}
	g.Eventually(func(g Gomega) {
		_, err := controller.Reconcile(ctx, ctrl.Request{NamespacedName: key})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.c.Get(ctx, key, hc)).To(Succeed())
		if lock := hc.Annotations[hyperv1.PrivateCAPIMigrationLockAnnotation]; lock != "" && hc.Annotations[hyperv1.PrivateCAPIMigrationAckAnnotation] != lock {
			g.Expect(m.c.Patch(ctx, hc, patch.Annotation(hyperv1.PrivateCAPIMigrationAckAnnotation, &lock))).To(Succeed()) // as operator-legacy does
		}
		g.Expect(hc.Annotations).To(And(HaveKeyWithValue(hyperv1.PrivateCAPITypesAnnotation, "true"), Not(HaveKey(hyperv1.PrivateCAPIMigrationInProgressAnnotation))), "%v", hc.Status.Conditions)
	}, longest, often).Should(Succeed())
}

// reader makes a user who may read everything and write nothing.
func (m *moving) reader(t *testing.T) string {
	t.Helper()
	g, name := NewWithT(t), "reader-"+m.ns
	g.Expect(m.c.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}}})).To(Succeed())
	g.Expect(m.c.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}})).To(Succeed())
	return name
}

// versions are the resource versions of all objects of both namespaces.
func (m *moving) versions(ctx context.Context, g Gomega) map[string]string {
	disco, err := discovery.NewDiscoveryClientForConfig(m.env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	lists, err := discovery.ServerPreferredResources(disco)
	g.Expect(err).NotTo(HaveOccurred())
	all := map[string]string{}
	for _, k := range listable(lists) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		for _, ns := range []string{m.ns, m.ns + "-demo"} {
			if !k.namespaced {
				continue
			}
			g.Expect(m.c.List(ctx, list, client.InNamespace(ns))).To(Succeed(), "%v", k)
			for _, o := range list.Items {
				all[fmt.Sprint(k.GroupVersionKind, ns, "/", o.Name)] = o.ResourceVersion
			}
		}
	}
	return all
}

func TestClusterInAMove(t *testing.T) {
	t.Run("When a hosted cluster is dumped while it is moved the dump should have the objects of both groups and the journal, and the move should go on", func(t *testing.T) {
		g := NewWithT(t)
		m := newMoving(t)
		dir, kubeconfig := t.TempDir(), filepath.Join(t.TempDir(), "kubeconfig")
		g.Expect(os.WriteFile(kubeconfig, m.env.Kubeconfig(t), 0o600)).To(Succeed())
		o := NewOptions()
		o.Connect.Kubeconfig, o.Name, o.Namespace, o.OperatorNamespace, o.ArtifactDir, o.Connect.As = kubeconfig, "demo", m.ns, m.ns, dir, m.reader(t)
		looks := 0
		m.look = func(ctx context.Context) {
			looks++
			before := m.versions(ctx, g)
			g.Eventually(func() error { return Cluster(ctx, o, io.Discard) }, longest, often).Should(Succeed()) // once the API server knows the role
			g.Expect(m.versions(ctx, g)).To(Equal(before), "something was written")
		}
		m.finish(t)
		g.Expect(looks).To(Equal(1))
		read := func(path ...string) string {
			raw, err := os.ReadFile(filepath.Join(append([]string{dir, "namespaces"}, path...)...))
			g.Expect(err).NotTo(HaveOccurred())
			return string(raw)
		}
		for _, group := range []string{standardGroup, privateGroup} {
			for kind, name := range map[string]string{"clusters": "demo-x", "machines": "worker-a"} {
				text := read(m.ns+"-demo", group, kind+".yaml")
				g.Expect(strings.Count(text, "\n    name: "+name+"\n")).To(Equal(1), "%s of %s:\n%s", kind, group, text)
				g.Expect(text).To(ContainSubstring("cluster.x-k8s.io/paused: "))
			}
		}
		g.Expect(read(m.ns+"-demo", "core", "configmaps.yaml")).To(And(ContainSubstring("name: "+migration.JournalName), ContainSubstring(string(migration.Switch))))
		g.Expect(read(m.ns, "hypershift.openshift.io", "hostedclusters.yaml")).To(ContainSubstring(hyperv1.PrivateCAPIMigrationLockAnnotation))
		problems, err := os.ReadFile(filepath.Join(dir, problemsFile))
		g.Expect(err).To(MatchError(fs.ErrNotExist), string(problems))
	})
}
