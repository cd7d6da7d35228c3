package platformtest

import (
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/platform/machine"
)

// stopSeconds is how long a provider may take to end, as all of them.
const stopSeconds = 10

// template asks for the machines' template twice.
func template(t *testing.T, newPlatform func() platform.Platform, example Example) {
	g := NewWithT(t)
	traits := newPlatform().Traits()
	g.Expect(traits.Architectures).NotTo(BeEmpty())
	g.Expect(traits.TemplateKind.Empty()).To(Equal(!traits.Managed), "a kind of templates if, and only if, machines are managed")
	in := machine.Input{HostedCluster: example.HostedCluster.DeepCopy(), NodePool: example.NodePool.DeepCopy(), Release: example.Release}
	first, err := newPlatform().MachineTemplate(in)
	g.Expect(err).NotTo(HaveOccurred())
	if !traits.Managed {
		g.Expect(first).To(BeNil())
		return
	}
	second, err := newPlatform().MachineTemplate(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second).To(BeComparableTo(first))
	g.Expect(first.Object.GetObjectKind().GroupVersionKind()).To(Equal(traits.TemplateKind))
	g.Expect(first.Object.GetName()).To(BeEmpty(), "the NodePool controller names it")
	g.Expect(in.NodePool).To(BeComparableTo(example.NodePool), "what is looked at is not changed")
}

// secrets checks what a platform copies into the control plane's namespace. Without anything to copy from it may have nothing, or
// fail by saying what is missing.
func secrets(t *testing.T, p platform.Platform, hc *hyperv1.HostedCluster, namespace string, objects []client.Object) {
	t.Helper()
	g := NewWithT(t)
	reader := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
	first, err := p.Credentials(t.Context(), reader, hc.DeepCopy(), namespace)
	if err != nil {
		g.Expect(objects).To(BeEmpty(), "%v, though all that is needed was given", err)
		g.Expect(err).To(MatchError(Or(ContainSubstring("Secret"), ContainSubstring("Namespace"))), "the error names what is missing")
		return
	}
	second, err := p.Credentials(t.Context(), reader, hc.DeepCopy(), namespace)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second).To(BeComparableTo(first), "the same twice")
	for _, o := range first {
		if kind := o.GetObjectKind().GroupVersionKind(); kind.Group == rbacv1.GroupName {
			g.Expect(kind.Kind).To(BeElementOf("Role", "RoleBinding"), "rights are of one namespace")
			g.Expect(o.GetName()).To(HaveSuffix(namespace), "clusters share no rights")
			continue
		}
		g.Expect(o.GetNamespace()).To(Equal(namespace))
		g.Expect(o.GetObjectKind().GroupVersionKind()).To(Equal(corev1.SchemeGroupVersion.WithKind("Secret")))
	}
}

// provider checks the Deployment of a platform's provider and its rights.
func provider(t *testing.T, p platform.Platform, hc *hyperv1.HostedCluster) {
	t.Helper()
	g := NewWithT(t)
	for _, rule := range p.CAPIProviderPolicyRules() {
		g.Expect(rule.Verbs).NotTo(BeEmpty())
		g.Expect(rule.APIGroups).NotTo(BeEmpty(), "rules are of a Role, which has no addresses")
		g.Expect(rule.NonResourceURLs).To(BeEmpty(), "rules are of a Role, which has no addresses")
		g.Expect(slices.Contains(rule.APIGroups, "*") && slices.Contains(rule.Resources, "*")).To(BeFalse(), "a provider doesn't need everything")
		g.Expect(rule.Verbs).NotTo(ContainElements("escalate"), "rights are given by the operator")
		g.Expect(rule.Verbs).NotTo(ContainElements("impersonate"), "rights are given by the operator")
	}
	spec, err := p.CAPIProvider(hc.DeepCopy(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	if spec == nil {
		return
	}
	pod := spec.Template.Spec
	if spec.Replicas != nil {
		g.Expect(*spec.Replicas).To(BeEquivalentTo(1), "providers of one cluster don't share their work")
	}
	if pod.TerminationGracePeriodSeconds != nil {
		g.Expect(*pod.TerminationGracePeriodSeconds).To(BeNumerically("<=", stopSeconds))
	}
	g.Expect(pod.HostNetwork).To(BeFalse())
	g.Expect(pod.HostPID).To(BeFalse())
	var args []string
	for _, c := range pod.Containers {
		g.Expect(c.Image).NotTo(BeEmpty(), "container %s", c.Name)
		if c.Name == "manager" {
			args = c.Args
		}
	}
	g.Expect(args).To(ContainElement(HavePrefix("--namespace")), "it is restricted to the control plane's namespace")
	g.Expect(args).To(ContainElement(HavePrefix("--leader-elect")), "the next pod may begin before the last has ended")
	again, err := p.CAPIProvider(hc.DeepCopy(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(BeComparableTo(spec), "the same twice")
	spec.Template.Spec.Containers[0].Image = "changed"
	g.Expect(again.Template.Spec.Containers[0].Image).NotTo(Equal("changed"), "callers complete what they get")
}

// deletion checks what is asked while a HostedCluster goes, when neither its release nor its credentials may be there any more.
func deletion(t *testing.T, p platform.Platform, hc *hyperv1.HostedCluster, namespace string) {
	t.Helper()
	g := NewWithT(t)
	going := hc.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{}
	going.Finalizers = []string{"test"}
	_, err := p.InfraCR(going, namespace, hyperv1.APIEndpoint{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = p.CAPIProvider(going, nil)
	g.Expect(err).NotTo(HaveOccurred())
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "not-ours"}}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(mine).Build()
	for range 2 {
		g.Expect(p.DeleteCredentials(t.Context(), c, going, namespace)).To(Succeed())
	}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(mine), &corev1.Secret{})).To(Succeed(), "what others have stays")
}

// concurrent calls what only computes from many places at a time, for the race detector.
func concurrent(t *testing.T, p platform.Platform, hc *hyperv1.HostedCluster, namespace string) {
	t.Helper()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, _ = p.InfraCR(hc, namespace, hyperv1.APIEndpoint{Host: "10.0.0.1", Port: 6443})
			_, _ = p.CAPIProvider(hc, nil)
			_ = p.CAPIProviderPolicyRules()
			_ = p.Traits()
		})
	}
	all.Wait()
}
