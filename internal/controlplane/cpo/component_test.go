package cpo

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/capiproxy"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/testenv/bare"
)

func TestManagementEnv(t *testing.T) {
	for name, tc := range map[string]struct{ in, out component.Management }{
		"When nothing is known it should stay unknown":            {},
		"When there are few nodes it should say how many":         {in: component.Management{Nodes: 2, Zones: 1, NativeSidecars: true}, out: component.Management{Nodes: 2, Zones: 1, NativeSidecars: true}},
		"When there are many nodes it should say enough":          {in: component.Management{Nodes: 250, Zones: 4}, out: component.Management{Nodes: 3, Zones: 3}},
		"When the namespace has a user it should be that":         {in: component.Management{SetDefaultSecurityContext: true, DefaultSecurityContextUID: 10042}, out: component.Management{SetDefaultSecurityContext: true, DefaultSecurityContextUID: 10042}},
		"When the namespace has no user it should be the default": {in: component.Management{SetDefaultSecurityContext: true}, out: component.Management{SetDefaultSecurityContext: true, DefaultSecurityContextUID: component.DefaultSecurityContextUID}},
		"When users are given by others it should be none":        {in: component.Management{DefaultSecurityContextUID: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			env := map[string]string{}
			for _, e := range ManagementEnv(tc.in) {
				env[e[0]] = e[1]
			}
			got, err := ManagementFromEnv(func(name string) string { return env[name] })
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.out))
		})
	}
	t.Run("When a number is none it should say which", func(t *testing.T) {
		_, err := ManagementFromEnv(func(string) string { return "-many" })
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(envNodes), ContainSubstring(envSecurityContextUID))))
	})
}

// served says that the management cluster has every kind.
type served struct{}

func (served) Accessible(context.Context, schema.GroupVersionKind) (bool, error) { return true, nil }

func TestProxyMonitor(t *testing.T) {
	for name, private := range map[string]bool{
		"When objects of Cluster API are private it should have the proxies looked at":       true,
		"When objects of Cluster API are standard it should take back what looks at proxies": false,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := bare.HostedControlPlane()
			hcp.Status.Conditions = append(hcp.Status.Conditions, metav1.Condition{Type: "ClusterVersionAvailable", Status: metav1.ConditionTrue})
			if private {
				hcp.Annotations[hyperv1.PrivateCAPITypesAnnotation] = "true"
			}
			ctx := bare.Context(t, hcp)
			ctx.Capabilities, ctx.OperatorImage = served{}, "registry.example.com/operator:1.0"
			out, err := NewComponent(Options{}).Render(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			wanted, other := out.Manifests, out.Unwanted
			if !private {
				wanted, other = other, wanted
			}
			named := HaveField("GetName()", capiproxy.Name)
			g.Expect(wanted).To(ContainElement(named))
			g.Expect(other).NotTo(ContainElement(named))
			if !private {
				return
			}
			for _, obj := range wanted {
				if u, ok := obj.(*unstructured.Unstructured); ok && u.GetName() == capiproxy.Name {
					endpoints, _, err := unstructured.NestedSlice(u.Object, "spec", "podMetricsEndpoints")
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(endpoints).To(ConsistOf(And(HaveKeyWithValue("port", capiproxy.HealthPortName), HaveKey("metricRelabelings"))))
					selector, _, err := unstructured.NestedSlice(u.Object, "spec", "selector", "matchExpressions")
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(selector).To(ConsistOf(HaveKeyWithValue("key", component.ControlPlaneComponentLabel)))
				}
			}
		})
	}
}
