package clitest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/cli/dump"
	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func flags(t *testing.T) (connect.Flags, client.WithWatch, *testenv.Env) {
	t.Helper()
	env := testenv.Start(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, env.Kubeconfig(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return connect.Flags{Kubeconfig: path}, env.Client(t, connect.Scheme()), env
}

func installOptions(f connect.Flags, namespace string) install.Options {
	o := install.NewOptions()
	o.Platforms = install.EveryPlatform()
	o.Connect, o.Namespace, o.Image, o.Timeout = f, namespace, "registry.example.com/operator:1", 5*time.Minute // on a busy machine, too
	return o
}

func TestInstallAndAgain(t *testing.T) {
	f, c, env := flags(t)
	g := NewWithT(t)
	namespace := "hypershift"
	var out bytes.Buffer
	g.Expect(install.Run(t.Context(), installOptions(f, namespace), &out)).To(Succeed())
	g.Expect(out.String()).To(ContainSubstring("created Deployment hypershift/operator"))

	t.Run("When it is run again it should change nothing", func(t *testing.T) {
		g := NewWithT(t)
		var again bytes.Buffer
		g.Expect(install.Run(t.Context(), installOptions(f, namespace), &again)).To(Succeed())
		g.Expect(again.String()).NotTo(MatchRegexp("created|changed"))
	})
	t.Run("When the image changes it should change the Deployment only", func(t *testing.T) {
		g := NewWithT(t)
		o := installOptions(f, namespace)
		o.Image = "registry.example.com/operator:2"
		var again bytes.Buffer
		g.Expect(install.Run(t.Context(), o, &again)).To(Succeed())
		g.Expect(strings.Count(again.String(), "changed ")).To(Equal(1))
		g.Expect(again.String()).To(ContainSubstring("changed Deployment hypershift/operator"))
	})
	t.Run("When the operator doesn't come up it should time out and say so", func(t *testing.T) {
		g := NewWithT(t)
		o := installOptions(f, namespace)
		o.Scope, o.WaitAvailable, o.Timeout = install.ScopeResources, true, 5*time.Second
		g.Eventually(func() error { // a time that is over while objects are applied says nothing of replicas
			o.Timeout *= 2
			return install.Run(t.Context(), o, &bytes.Buffer{})
		}).WithTimeout(3 * time.Minute).Should(And(MatchError(context.DeadlineExceeded), MatchError(ContainSubstring("0 of 1 replicas available"))))
	})
	t.Run("When the operator hands out rights the API server should let it", func(t *testing.T) {
		testEscalation(t, c, env, namespace)
	})
}

// testEscalation plays the operator, and the control plane operator below it, with their real rights, and makes them create
// the Roles that they create in production: the API server refuses any right that they don't hold themselves.
func testEscalation(t *testing.T, admin client.Client, env *testenv.Env, namespace string) {
	g := NewWithT(t)
	plane := env.Namespace(t)
	as := func(ns, account string) client.Client {
		config := rest.CopyConfig(env.Config)
		config.Impersonate = rest.ImpersonationConfig{
			UserName: fmt.Sprintf("system:serviceaccount:%s:%s", ns, account),
			Groups:   []string{"system:serviceaccounts", "system:authenticated"},
		}
		c, err := client.New(config, client.Options{Scheme: connect.Scheme()})
		g.Expect(err).NotTo(HaveOccurred())
		return c
	}
	roles := map[string]*rbacv1.Role{}
	files, err := filepath.Glob("../../controlplane/*/assets/*role.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		raw, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		role := &rbacv1.Role{}
		g.Expect(yaml.UnmarshalStrict(raw, role)).To(Succeed(), file)
		for _, rule := range role.Rules {
			for i := range rule.APIGroups { // as the operator's proxy stores them
				rule.APIGroups[i] = translate.Group(rule.APIGroups[i])
			}
		}
		role.Namespace = plane
		roles[role.Name] = role
	}
	cpo := roles["control-plane-operator"]
	g.Expect(cpo).NotTo(BeNil())
	delete(roles, cpo.Name)

	operator := as(namespace, "operator")
	g.Expect(operator.Create(t.Context(), cpo)).To(Succeed())
	g.Expect(operator.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: plane, Name: cpo.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: cpo.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: cpo.Name, Namespace: plane}},
	})).To(Succeed())
	for _, role := range roles {
		g.Eventually(func() error { return as(plane, cpo.Name).Create(t.Context(), role) }, "1m", "200ms").Should(Succeed(), role.Name)
	}

	// And no more than that.
	err = operator.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "everything"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	})
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue())
	err = operator.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "any"}})
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue())
}

func clusterOptions(f connect.Flags, platform hyperv1.PlatformType, namespace string) create.Options {
	o := create.NewOptions(platform)
	o.Connect, o.Name, o.Namespace, o.ReleaseImage, o.Timeout = f, "demo", namespace, "registry.example.com/release:1.36.3", 20*time.Second
	return o
}

func TestCreate(t *testing.T) {
	f, c, env := flags(t)
	for name, change := range map[string]func(*create.Options){
		"When the platform is Local the API server should accept it":                func(*create.Options) {},
		"When the platform is None with node ports the API server should accept it": func(o *create.Options) { o.LoadBalancer, o.APIServerAddress = false, "10.0.0.1" },
		"When it is highly available with workers the API server should accept it": func(o *create.Options) {
			o.Availability, o.NodePool.Replicas, o.BaseDomain, o.BaseDomainPrefix = hyperv1.HighlyAvailable, 2, "example.com", "none"
			o.ServiceCIDRs, o.ClusterCIDRs = []string{"172.31.0.0/16", "fd01::/112"}, []string{"10.132.0.0/14", "fd02::/48"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			platform := hyperv1.LocalPlatform
			if strings.Contains(name, "None") {
				platform = hyperv1.NonePlatform
			}
			o := clusterOptions(f, platform, env.Namespace(t))
			o.PullSecret = []byte(`{"auths":{}}`)
			change(&o)
			var out bytes.Buffer
			g.Expect(create.Cluster(t.Context(), o, &out)).To(Succeed())

			// Again: nothing changes, the keys least of all.
			secrets := &corev1.SecretList{}
			g.Expect(c.List(t.Context(), secrets, client.InNamespace(o.Namespace))).To(Succeed())
			before := &hyperv1.HostedCluster{}
			g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, before)).To(Succeed())
			out.Reset()
			g.Expect(create.Cluster(t.Context(), o, &out)).To(Succeed())
			for _, line := range strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' }) {
				g.Expect(line).To(ContainSubstring("not heeded: "), "only what is said of the manifest may be said again")
			}
			again := &corev1.SecretList{}
			g.Expect(c.List(t.Context(), again, client.InNamespace(o.Namespace))).To(Succeed())
			g.Expect(again.Items).To(Equal(secrets.Items))

			// What can't change is refused with the field's name.
			o.EtcdStorageSize = "100Gi"
			g.Expect(create.Cluster(t.Context(), o, &out)).To(MatchError(ContainSubstring("spec.etcd.managed.storage.persistentVolume.size")))
		})
	}
	t.Run("When no way to publish is given and no node is ready it should name the flags", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		o := clusterOptions(f, hyperv1.NonePlatform, env.Namespace(t))
		o.PullSecret = []byte(`{"auths":{}}`)
		g.Expect(create.Cluster(t.Context(), o, &bytes.Buffer{})).To(MatchError(ContainSubstring("--external-api-server-address")))
	})
	t.Run("When it waits it should say what is missing and end when that is there", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		o := clusterOptions(f, hyperv1.LocalPlatform, env.Namespace(t))
		o.Wait, o.Timeout = true, 750*time.Millisecond
		var out bytes.Buffer
		g.Eventually(func() error { // a time that is over before somebody has looked says nothing of the operator
			o.Timeout *= 2
			return create.Cluster(t.Context(), o, &out)
		}).WithTimeout(time.Minute).Should(And(MatchError(context.DeadlineExceeded), MatchError(ContainSubstring("the operator hasn't looked at it yet"))))

		publish(t, c, client.ObjectKey{Namespace: o.Namespace, Name: o.Name})
		o.Timeout = time.Minute
		g.Expect(create.Cluster(t.Context(), o, &out)).To(Succeed())
		g.Expect(out.String()).To(ContainSubstring("is available"))
	})
}

// publish plays the operator of a cluster that came up.
func publish(t *testing.T, c client.Client, key client.ObjectKey) {
	g := NewWithT(t)
	hc := &hyperv1.HostedCluster{}
	g.Expect(c.Get(t.Context(), key, hc)).To(Succeed())
	now := metav1.Now()
	hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: "demo-admin-kubeconfig"}
	hc.Status.Version = &hyperv1.ClusterVersionStatus{
		Desired: configv1.Release{Image: hc.Spec.Release.Image},
		History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, StartedTime: now, CompletionTime: &now, Version: "1.36.3", Image: hc.Spec.Release.Image}},
	}
	hc.Status.Conditions = []metav1.Condition{{
		Type: hyperv1.HostedClusterAvailable, Status: metav1.ConditionTrue, Reason: hyperv1.AsExpectedReason, ObservedGeneration: hc.Generation, LastTransitionTime: now,
	}}
	g.Expect(c.Status().Update(t.Context(), hc)).To(Succeed())
}

func TestDump(t *testing.T) {
	f, c, env := flags(t)
	g := NewWithT(t)
	o := clusterOptions(f, hyperv1.LocalPlatform, env.Namespace(t))
	o.PullSecret = []byte(`{"auths":{"quay.io":{"auth":"aHVudGVyMg=="}}}`)
	g.Expect(create.Cluster(t.Context(), o, &bytes.Buffer{})).To(Succeed())
	plane := names.ControlPlaneNamespace(o.Namespace, o.Name)
	g.Expect(c.Create(t.Context(), connect.Namespace(plane))).To(Succeed())
	g.Expect(c.Create(t.Context(), &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: plane, Name: "etcd"}})).To(Succeed())
	g.Expect(c.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: plane, Name: "leaky"}, Data: map[string]string{"kubeconfig": "users:\n- user: {token: hunter2hunter2}\n"},
	})).To(Succeed())

	d := dump.NewOptions()
	d.Connect, d.Name, d.Namespace, d.ArtifactDir, d.Guest = f, o.Name, o.Namespace, filepath.Join(t.TempDir(), "dump"), true
	var out bytes.Buffer
	g.Expect(dump.Cluster(t.Context(), d, &out)).To(Succeed())

	read := func(path ...string) string {
		raw, err := os.ReadFile(filepath.Join(append([]string{d.ArtifactDir}, path...)...))
		g.Expect(err).NotTo(HaveOccurred())
		return string(raw)
	}
	g.Expect(read("namespaces", o.Namespace, "hypershift.openshift.io", "hostedclusters.yaml")).To(ContainSubstring("name: demo"))
	g.Expect(read("namespaces", plane, "hypershift.openshift.io", "controlplanecomponents.yaml")).To(ContainSubstring("name: etcd"))
	g.Expect(read("namespaces", o.Namespace, "core", "secrets.yaml")).To(And(ContainSubstring("demo-pull-secret"), ContainSubstring("REDACTED")))
	g.Expect(read("problems.txt")).To(ContainSubstring("no kubeconfig yet"))
	g.Expect(read("hypershift-dump.tar.gz")).NotTo(BeEmpty())
	err := filepath.WalkDir(d.ArtifactDir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		g.Expect(string(raw)).NotTo(Or(ContainSubstring("hunter2"), ContainSubstring("aHVudGVyMg"), ContainSubstring("YUhWdWRHVnlNZ")), path)
		return err
	})
	g.Expect(err).NotTo(HaveOccurred())
}
