package environment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
)

// server has a version, or is down.
type server struct{ err error }

func (s *server) ServerVersion() (*version.Info, error) {
	return &version.Info{GitVersion: "v1.36.3"}, s.err
}

var kinds = map[string]schema.GroupVersion{
	"ClusterVersion": {Group: "config.openshift.io", Version: "v1"}, "Proxy": {Group: "config.openshift.io", Version: "v1"},
	"HostedCluster": {Group: "hypershift.openshift.io", Version: "v1beta1"},
}

// serving refuses kinds that a cluster does not have; the fake client has all.
type serving struct {
	client.Client
	kinds []string
}

func (s serving) check(obj runtime.Object) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	kind := strings.TrimSuffix(gvk.Kind, "List")
	if _, optional := kinds[kind]; optional && !slices.Contains(s.kinds, kind) {
		return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return nil
}

func (s serving) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := s.check(obj); err != nil {
		return err
	}
	return s.Client.Get(ctx, key, obj, opts...)
}

func (s serving) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := s.check(list); err != nil {
		return err
	}
	return s.Client.List(ctx, list, opts...)
}

// cluster serves the named kinds beside those of Kubernetes, and holds objects.
func cluster(t *testing.T, served []string, objects ...string) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind := range kinds {
		scheme.AddKnownTypeWithName(kinds[kind].WithKind(kind), &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kinds[kind].WithKind(kind+"List"), &unstructured.UnstructuredList{})
	}
	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, text := range objects {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
			t.Fatal(err)
		}
		b = b.WithObjects(obj)
	}
	return serving{b.Build(), served}
}

const (
	clusterVersion = `{apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version},
  status: {history: [{state: Partial, version: 4.21.0}, {state: Completed, version: 4.20.3}, {state: Completed, version: 4.19.1}]}}`
	proxy = `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster},
  spec: {httpProxy: "http://spec"}, status: {httpProxy: "http://p:3128", httpsProxy: "http://q:3128", noProxy: .local}}`
	noProxy   = `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, spec: {httpProxy: "http://spec"}}`
	managed   = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: openshift-config, name: osd-cluster-metadata}, data: {region: north}}`
	hostedOne = `{apiVersion: hypershift.openshift.io/v1beta1, kind: HostedCluster, metadata: {namespace: clusters, name: a.b, labels: {tier: gold}, annotations: {note: x}},
  spec: {nodeSelector: {role: cp}}}`
)

func detector(c client.Client) (*Detector, *testingclock.FakeClock) {
	clk := testingclock.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	return &Detector{Reader: c, Server: &server{}, Clock: clk}, clk
}

func TestGet(t *testing.T) {
	kubernetes := manifests.PackageEnvironmentKubernetes{Version: "v1.36.3"}
	hosted := &manifests.PackageEnvironmentHyperShift{HostedCluster: &manifests.PackageEnvironmentHyperShiftHostedCluster{
		TemplateContextObjectMeta: manifests.TemplateContextObjectMeta{
			Name: "a.b", Namespace: "clusters", Labels: map[string]string{"tier": "gold"}, Annotations: map[string]string{"note": "x"},
		},
		HostedClusterNamespace: "clusters-a-b", NodeSelector: map[string]string{"role": "cp"},
	}}
	openShift := []string{"ClusterVersion", "Proxy"}
	for name, tc := range map[string]struct {
		served, objects []string
		namespace       string
		want            manifests.PackageEnvironment
	}{
		"When it is plain Kubernetes it should say no more": {want: manifests.PackageEnvironment{Kubernetes: kubernetes}},
		"When the kind of OpenShift has no object it should be no OpenShift": {
			served: openShift, objects: []string{proxy}, want: manifests.PackageEnvironment{Kubernetes: kubernetes},
		},
		"When it is OpenShift it should have the last version that was completed": {
			served: openShift, objects: []string{clusterVersion},
			want: manifests.PackageEnvironment{Kubernetes: kubernetes, OpenShift: &manifests.PackageEnvironmentOpenShift{Version: "4.20.3"}},
		},
		"When it is managed and behind a proxy it should say so, from the proxy's status": {
			served: openShift, objects: []string{clusterVersion, proxy, managed},
			want: manifests.PackageEnvironment{
				Kubernetes: kubernetes,
				OpenShift:  &manifests.PackageEnvironmentOpenShift{Version: "4.20.3", Managed: &manifests.PackageEnvironmentManagedOpenShift{Data: map[string]string{"region": "north"}}},
				Proxy:      &manifests.PackageEnvironmentProxy{HTTPProxy: "http://p:3128", HTTPSProxy: "http://q:3128", NoProxy: ".local"},
			},
		},
		"When the proxy is only asked for it should have none yet": {
			served: openShift, objects: []string{clusterVersion, noProxy},
			want: manifests.PackageEnvironment{Kubernetes: kubernetes, OpenShift: &manifests.PackageEnvironmentOpenShift{Version: "4.20.3"}},
		},
		"When hosted clusters can be had it should say so, to cluster-scoped packages, too": {
			served: []string{"HostedCluster"}, objects: []string{hostedOne},
			want: manifests.PackageEnvironment{Kubernetes: kubernetes, HyperShift: &manifests.PackageEnvironmentHyperShift{}},
		},
		"When a namespace is that of a hosted cluster it should say which": {
			served: []string{"HostedCluster"}, objects: []string{hostedOne}, namespace: "clusters-a-b",
			want: manifests.PackageEnvironment{Kubernetes: kubernetes, HyperShift: hosted},
		},
		"When a namespace is another one it should know of none": {
			served: []string{"HostedCluster"}, objects: []string{hostedOne}, namespace: "default",
			want: manifests.PackageEnvironment{Kubernetes: kubernetes, HyperShift: &manifests.PackageEnvironmentHyperShift{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			d, _ := detector(cluster(t, tc.served, tc.objects...))
			g.Expect(d.Get(t.Context(), tc.namespace)).To(Equal(tc.want))
			g.Expect(d.Source(t.Context(), tc.namespace)).To(Equal(tc.want), "object templates see the same")
		})
	}
}

func TestNewHostedCluster(t *testing.T) {
	g := NewWithT(t)
	c := cluster(t, []string{"HostedCluster"})
	d, clk := detector(c)
	at := func() *manifests.PackageEnvironmentHyperShiftHostedCluster {
		env, err := d.Get(t.Context(), "clusters-a-b")
		g.Expect(err).NotTo(HaveOccurred())
		return env.HyperShift.HostedCluster
	}
	g.Expect(at()).To(BeNil())
	obj := &unstructured.Unstructured{}
	g.Expect(yaml.Unmarshal([]byte(hostedOne), &obj.Object)).To(Succeed())
	g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	g.Expect(at()).To(BeNil(), "many packages of other namespaces must not list hosted clusters all the time")
	clk.Step(unknownInterval + time.Second)
	g.Expect(at()).NotTo(BeNil())
}

func TestServerIsDown(t *testing.T) {
	g := NewWithT(t)
	d, _ := detector(cluster(t, nil))
	d.Server = &server{err: errors.New("down")}
	_, err := d.Get(t.Context(), "")
	g.Expect(err).To(MatchError("reading the version of the API server: down"))
}

func TestChanges(t *testing.T) {
	g := NewWithT(t)
	c := cluster(t, []string{"ClusterVersion", "Proxy"}, clusterVersion)
	d, clk := detector(c)
	changed := make(chan struct{}, 10)
	d.Changed = func(context.Context) { changed <- struct{}{} }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Start(ctx) }()
	g.Eventually(clk.HasWaiters, time.Minute).Should(BeTrue())
	g.Eventually(func() error { _, err := d.Get(t.Context(), ""); return err }, time.Minute).Should(Succeed())

	obj := &unstructured.Unstructured{}
	g.Expect(yaml.Unmarshal([]byte(proxy), &obj.Object)).To(Succeed())
	g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	// The clock moves until the change is seen: a tick that falls between two looks is not lost, but may come before the object.
	g.Eventually(func() int { clk.Step(interval); return len(changed) }, time.Minute).Should(BeNumerically(">", 0))
	env, err := d.Get(t.Context(), "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(env.Proxy.NoProxy).To(Equal(".local"))
	g.Expect(len(changed)).To(Equal(1), "once for one change")
	cancel()
	g.Eventually(ended, time.Minute).Should(Receive(BeNil()))
}

// TestFoundByTheWay: who asks for the environment of a namespace of no hosted cluster reads all anew. What that finds has to be told, too.
func TestFoundByTheWay(t *testing.T) {
	g := NewWithT(t)
	c := cluster(t, []string{"HostedCluster"}, hostedOne)
	d, clk := detector(c)
	changed := make(chan struct{}, 10)
	d.Changed = func(context.Context) { changed <- struct{}{} }
	go func() { _ = d.Start(t.Context()) }()
	g.Eventually(clk.HasWaiters, time.Minute).Should(BeTrue())
	g.Eventually(func() error { _, err := d.Get(t.Context(), ""); return err }, time.Minute).Should(Succeed())

	obj := &unstructured.Unstructured{}
	g.Expect(yaml.Unmarshal([]byte(hostedOne), &obj.Object)).To(Succeed())
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	obj.SetLabels(map[string]string{"tier": "silver"})
	g.Expect(c.Update(t.Context(), obj)).To(Succeed())
	clk.Step(unknownInterval + time.Second)
	_, err := d.Get(t.Context(), "an-ordinary-namespace")
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(changed, time.Minute).Should(Receive(), "without waiting for the next look")
	for range 3 {
		clk.Step(interval)
	}
	g.Consistently(changed, "200ms").ShouldNot(Receive(), "once for one change")
}

// TestSameNamespace: two hosted clusters may have the same name for their control plane's namespace. It is that of one of them.
func TestSameNamespace(t *testing.T) {
	const (
		victim   = `{apiVersion: hypershift.openshift.io/v1beta1, kind: HostedCluster, metadata: {namespace: a, name: b-c, creationTimestamp: "2026-01-01T00:00:00Z", labels: {of: victim}}}`
		intruder = `{apiVersion: hypershift.openshift.io/v1beta1, kind: HostedCluster, metadata: {namespace: a-b, name: c, creationTimestamp: "2026-01-02T00:00:00Z", labels: {of: intruder}}}`
		earlier  = `{apiVersion: hypershift.openshift.io/v1beta1, kind: HostedCluster, metadata: {namespace: a-b, name: c, creationTimestamp: "2025-01-02T00:00:00Z", labels: {of: intruder}}}`
		ns       = `{apiVersion: v1, kind: Namespace, metadata: {name: a-b-c, labels: {hypershift.openshift.io/hosted-control-plane: "true"}, annotations: {hypershift.openshift.io/cluster: %s}}}`
	)
	for name, tc := range map[string]struct {
		objects []string
		want    string
	}{
		"When the namespace says whose it is it should believe that":                {[]string{victim, intruder, fmt.Sprintf(ns, "a/b-c")}, "victim"},
		"When the other was made first it should still believe the namespace":       {[]string{victim, earlier, fmt.Sprintf(ns, "a/b-c")}, "victim"},
		"When the namespace belongs to somebody else it should know of none":        {[]string{intruder, fmt.Sprintf(ns, "a/b-c")}, ""},
		"When the namespace says nothing it should be that of the first":            {[]string{victim, intruder}, "victim"},
		"When the namespace says nothing it should be that of the first, also last": {[]string{earlier, victim}, "intruder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			d, _ := detector(cluster(t, []string{"HostedCluster"}, tc.objects...))
			env, err := d.Get(t.Context(), "a-b-c")
			g.Expect(err).NotTo(HaveOccurred())
			if tc.want == "" {
				g.Expect(env.HyperShift.HostedCluster).To(BeNil())
				return
			}
			g.Expect(env.HyperShift.HostedCluster.Labels).To(HaveKeyWithValue("of", tc.want))
		})
	}
}
