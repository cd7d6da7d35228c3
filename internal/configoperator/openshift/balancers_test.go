package openshift

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// mirror is what the cloud-controller-manager makes of a load balancer of the hosted cluster.
func mirror(name string, change func(*corev1.Service)) corev1.Service {
	s := corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name, UID: "0123", Labels: map[string]string{hyperv1.InfraIDLabel: "demo-abcde", tenantService: "shop"}},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{
			{Name: "web", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(31080)}, {Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53, TargetPort: intstr.FromInt32(31053)}}},
	}
	if change != nil {
		change(&s)
	}
	return s
}

func TestBalancers(t *testing.T) {
	t.Run("When the hosted cluster has a load balancer its mirror should lead to the machines, at the ports of nodes", func(t *testing.T) {
		g := NewWithT(t)
		in := virtual(t)
		in.HCP.Spec.Platform.Kubevirt.BaseDomainPassthrough = nil // it has nothing to do with that
		in.Control.Mirrors = []corev1.Service{mirror("a0123", nil)}
		actions, err := balancers(in)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(actions).To(HaveLen(2))
		for i, want := range []struct {
			name, family string
			addresses    []any
		}{{"a0123-ipv4", "IPv4", []any{"10.0.0.1", "10.0.0.2"}}, {"a0123-ipv6", "IPv6", []any{"fd00::1"}}} {
			a := actions[i]
			g.Expect(a.Do == Apply && a.Management && a.Infra).To(BeTrue())
			u := a.Object.(*unstructured.Unstructured)
			g.Expect(u.GetName()).To(Equal(want.name))
			g.Expect(u.GetLabels()).To(HaveKeyWithValue("kubernetes.io/service-name", "a0123"))
			g.Expect(u.GetOwnerReferences()).To(ConsistOf(HaveField("UID", BeEquivalentTo("0123"))))
			g.Expect(u.Object["addressType"]).To(Equal(want.family))
			g.Expect(u.Object["ports"]).To(Equal([]any{
				map[string]any{"name": "web", "protocol": "TCP", "port": int64(31080)}, map[string]any{"name": "dns", "protocol": "UDP", "port": int64(31053)}}))
			var addresses []any
			for _, e := range u.Object["endpoints"].([]any) {
				addresses = append(addresses, e.(map[string]any)["addresses"].([]any)...)
			}
			g.Expect(addresses).To(Equal(want.addresses))
		}
	})
	for name, change := range map[string]func(*corev1.Service){
		"selects pods itself":  func(s *corev1.Service) { s.Spec.Selector = map[string]string{"a": "b"} },
		"has no ports":         func(s *corev1.Service) { s.Spec.Ports = nil },
		"names ports of pods":  func(s *corev1.Service) { s.Spec.Ports = []corev1.ServicePort{{TargetPort: intstr.FromString("web")}} },
		"has a port too great": func(s *corev1.Service) { s.Spec.Ports = []corev1.ServicePort{{TargetPort: intstr.FromInt32(70000)}} },
		"is being deleted":     func(s *corev1.Service) { s.DeletionTimestamp = ptr.To(metav1.Now()) },
	} {
		t.Run("When a mirror "+name+" it should be left alone", func(t *testing.T) {
			g := NewWithT(t)
			in := virtual(t)
			in.Control.Mirrors = []corev1.Service{mirror("a0123", change)}
			actions, err := balancers(in)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(actions).To(BeEmpty())
		})
	}
	t.Run("When mirrors can't be read it should be said", func(t *testing.T) {
		in := virtual(t)
		in.Control.MirrorsErr = errors.New("refused")
		_, err := balancers(in)
		NewWithT(t).Expect(err).To(MatchError("refused"))
	})
}

func TestObserveMirrors(t *testing.T) {
	other, no := mirror("other", func(s *corev1.Service) { s.Labels[hyperv1.InfraIDLabel] = "other" }), mirror("no", func(s *corev1.Service) { delete(s.Labels, tenantService) })
	b, a := mirror("b", nil), mirror("a", nil)
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(&other, &no, &b, &a).Build()
	t.Run("When there are Services of others it should find those of this cluster alone", func(t *testing.T) {
		g := NewWithT(t)
		got, err := ObserveMirrors(t.Context(), c, virtual(t).HCP)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(HaveLen(2))
		g.Expect(got[0].Name + got[1].Name).To(Equal("ab"))
	})
	t.Run("When the platform is another's it should read nothing", func(t *testing.T) {
		g := NewWithT(t)
		hcp := virtual(t).HCP
		hcp.Spec.Platform.Type = hyperv1.NonePlatform
		g.Expect(ObserveMirrors(t.Context(), nil, hcp)).To(BeEmpty())
	})
}
