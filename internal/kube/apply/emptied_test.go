package apply_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/testenv"
)

// controlPlane is a HostedControlPlane with one field of the spec that varies.
func controlPlane(ns, field string, value any) *unstructured.Unstructured {
	var services []any
	for _, name := range []string{"APIServer", "OAuthServer", "Konnectivity", "Ignition"} {
		services = append(services, map[string]any{"service": name, "servicePublishingStrategy": map[string]any{"type": "LoadBalancer"}})
	}
	spec := map[string]any{
		"releaseImage": "registry.example.com/release:1", "issuerURL": "https://issuer.example.com", "infraID": "demo", "services": services,
		"sshKey": map[string]any{}, "pullSecret": map[string]any{"name": "pull"}, "dns": map[string]any{"baseDomain": "example.com"},
		"platform": map[string]any{"type": "None"}, "controllerAvailabilityPolicy": "SingleReplica",
		"networking": map[string]any{"clusterNetwork": []any{map[string]any{"cidr": "10.1.0.0/16"}}},
		"etcd": map[string]any{"managementType": "Managed", "managed": map[string]any{"storage": map[string]any{
			"type": "PersistentVolume", "persistentVolume": map[string]any{"size": "8Gi"}}}},
	}
	spec[field] = value
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane", "metadata": map[string]any{"namespace": ns, "name": "demo"}, "spec": spec,
	}}
}

func TestEmptied(t *testing.T) {
	env := testenv.Start(t)
	c := env.Client(t, newScheme(t))
	object := func(key string, value any) map[string]any { return map[string]any{key: value} }
	proxy, endpoints := object("httpProxy", "http://proxy.example.com"), object("readinessEndpoints", []any{"http://a.example.com"})
	for name, tc := range map[string]struct {
		field         string
		before, after any
		writes        int
	}{
		"When the last field of an object goes it should be empty, and no null":                  {"configuration", object("proxy", proxy), object("proxy", map[string]any{}), 3},
		"When an object goes that was all of another one the other should be empty, and no null": {"configuration", object("proxy", proxy), map[string]any{}, 3},
		"When the last list of an object goes it should be empty, and no null":                   {"configuration", object("proxy", endpoints), object("proxy", map[string]any{}), 3},
		"When the last key of a map goes it should be empty, and no null":                        {"nodeSelector", object("a", "b"), map[string]any{}, 3},
		"When an object goes with its last field it should take one write":                       {"configuration", object("proxy", proxy), nil, 1},
		"When an object keeps a field it should take one write": {"configuration", object("proxy", map[string]any{"httpProxy": proxy["httpProxy"], "readinessEndpoints": endpoints["readinessEndpoints"]}),
			object("proxy", proxy), 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ns := env.Namespace(t)
			g.Expect(apply.New(c, "test").Apply(t.Context(), controlPlane(ns, tc.field, tc.before))).To(Succeed())
			want := controlPlane(ns, tc.field, tc.after)
			if tc.after == nil {
				unstructured.RemoveNestedField(want.Object, "spec", tc.field)
			}
			counting := testenv.NewFaultClient(c, testenv.FailWrite, 0)
			g.Expect(apply.New(counting, "test").Apply(t.Context(), want)).To(Succeed())
			g.Expect(counting.Writes()).To(Equal(tc.writes))
			live := want.DeepCopy()
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(want), live)).To(Succeed())
			have, found, err := unstructured.NestedFieldNoCopy(live.Object, "spec", tc.field)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).To(Equal(tc.after != nil))
			if found {
				g.Expect(have).To(Equal(tc.after))
			}
			g.Expect(apply.New(counting, "test").Apply(t.Context(), want)).To(Succeed())
			g.Expect(counting.Writes()).To(Equal(tc.writes), "a second time there is nothing to write")
		})
	}
	t.Run("When it dies between the two parts it should go on in the next pass", func(t *testing.T) {
		ns := env.Namespace(t)
		want := controlPlane(ns, "configuration", object("proxy", map[string]any{}))
		for after := 1; after <= 2; after++ {
			g := NewWithT(t)
			g.Expect(apply.New(c, "test").Apply(t.Context(), controlPlane(ns, "configuration", object("proxy", proxy)))).To(Succeed())
			dying := testenv.NewFaultClient(c, testenv.FailWrite, after+1)
			g.Expect(apply.New(dying, "test").Apply(t.Context(), want)).NotTo(Succeed())
			g.Expect(apply.New(c, "test").Apply(t.Context(), want)).To(Succeed())
			live := want.DeepCopy()
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(want), live)).To(Succeed())
			have, _, err := unstructured.NestedMap(live.Object, "spec", "configuration")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(have).To(Equal(object("proxy", map[string]any{})))
		}
	})
	t.Run("When what is refused has another reason it should be told after one write", func(t *testing.T) {
		g := NewWithT(t)
		ns := env.Namespace(t)
		g.Expect(apply.New(c, "test").Apply(t.Context(), controlPlane(ns, "nodeSelector", object("a", "b")))).To(Succeed())
		counting := testenv.NewFaultClient(c, testenv.FailWrite, 0)
		err := apply.New(counting, "test").Apply(t.Context(), controlPlane(ns, "controllerAvailabilityPolicy", "Sometimes"))
		g.Expect(err).To(MatchError(ContainSubstring("controllerAvailabilityPolicy")))
		g.Expect(counting.Writes()).To(Equal(1))
	})
}
