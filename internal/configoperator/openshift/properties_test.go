package openshift

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// platforms are inputs of platforms that no scenario has.
func platforms(t testing.TB) map[string]Input {
	t.Helper()
	all := map[string]Input{}
	for _, name := range scenarios {
		all[name] = scenario(t, name)
	}
	of := func(name string, change func(*hyperv1.HostedControlPlane)) {
		hcp := scenario(t, "plain").HCP
		hcp.Spec.Platform = hyperv1.PlatformSpec{}
		change(hcp)
		all[name] = inputFor(hcp, name)
	}
	of("kubevirt", func(h *hyperv1.HostedControlPlane) {
		h.Spec.Platform.Type, h.Spec.Platform.Kubevirt = hyperv1.KubevirtPlatform, &hyperv1.KubevirtPlatformSpec{GenerateID: "abc"}
	})
	of("openstack", func(h *hyperv1.HostedControlPlane) {
		h.Spec.Platform.Type = hyperv1.OpenStackPlatform
		h.Spec.Platform.OpenStack = &hyperv1.OpenStackPlatformSpec{IdentityRef: hyperv1.OpenStackIdentityReference{Name: "identity"}, IngressFloatingIP: "192.0.2.1"}
	})
	of("powervs", func(h *hyperv1.HostedControlPlane) {
		h.Spec.Platform.Type, h.Spec.Platform.PowerVS = hyperv1.PowerVSPlatform, &hyperv1.PowerVSPlatformSpec{Region: "us-south"}
		p := h.Spec.Platform.PowerVS
		p.IngressOperatorCloudCreds.Name, p.StorageOperatorCloudCreds.Name, p.ImageRegistryOperatorCloudCreds.Name = "ingress", "storage", "registry"
	})
	of("none without capabilities", func(h *hyperv1.HostedControlPlane) {
		h.Spec.Platform.Type = hyperv1.NonePlatform
		h.Spec.Capabilities = &hyperv1.Capabilities{Disabled: []hyperv1.OptionalCapability{hyperv1.ImageRegistryCapability, hyperv1.IngressCapability, hyperv1.ConsoleCapability}}
	})
	return all
}

// TestProperties hold for the objects of every hosted cluster.
func TestProperties(t *testing.T) {
	for name, in := range platforms(t) {
		t.Run("When a hosted cluster is "+name+" its objects should be sound", func(t *testing.T) {
			g := NewWithT(t)
			actions, err := Plan(in)
			g.Expect(err).NotTo(HaveOccurred())
			seen := map[string]bool{}
			for _, a := range actions {
				u := outcomeOf(t, a)
				key := map[bool]string{true: "control plane: "}[a.Management] + u.GetAPIVersion() + " " + a.Name()
				g.Expect(seen[key]).To(BeFalse(), "two actions are about %s", key)
				seen[key] = true
				g.Expect(content.IsPathSegmentName(a.Object.GetName())).To(BeEmpty(), key)
				g.Expect(len(a.Object.GetName())).To(And(BeNumerically(">", 0), BeNumerically("<=", 253)), key)
				if a.Do == Delete || a.Do == DeleteOwn {
					continue
				}
				if !a.Management {
					g.Expect(u.GetLabels()).To(HaveKeyWithValue(hyperv1.ManagedLabel, "true"), key)
				}
				raw, err := json.Marshal(u.Object)
				g.Expect(err).NotTo(HaveOccurred())
				if u.GetKind() != "Secret" {
					g.Expect(leaked(in, string(raw))).To(BeEmpty(), key)
				}
				if a.Change != nil {
					again := (&unstructured.Unstructured{Object: u.Object}).DeepCopy()
					again.SetResourceVersion("1")
					second, err := changed(a, again)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(second.Object).To(Equal(again.Object), "%s changes once more what it has made", key)
				}
			}
		})
	}
}

// leaked are the Secrets of the control plane of which a text has a private part.
func leaked(in Input, text string) []string {
	var names []string
	for name, s := range in.Control.Secrets {
		for key, value := range s.Data {
			if key != "tls.crt" && (strings.Contains(text, string(value)) || strings.Contains(text, base64.StdEncoding.EncodeToString(value))) {
				names = append(names, name+"/"+key)
			}
		}
	}
	return names
}

// TestHostile gives every change an object in which everything is of another type than it should be.
func TestHostile(t *testing.T) {
	hostile := []map[string]any{
		{"spec": "text", "status": []any{"x"}, "data": int64(1)},
		{"spec": map[string]any{"platformSpec": int64(1), "defaultNetwork": "x", "storage": []any{}, "capabilities": nil}, "status": map[string]any{"capabilities": map[string]any{"knownCapabilities": "x"}, "conditions": map[string]any{}, "platformStatus": "x"}},
		{"spec": map[string]any{}, "status": map[string]any{"capabilities": map[string]any{"knownCapabilities": []any{int64(1), map[string]any{}}}, "conditions": []any{"x", map[string]any{"type": int64(1), "lastTransitionTime": true}}}},
	}
	for name, in := range platforms(t) {
		t.Run("When somebody put nonsense into the objects of "+name+" it should be replaced", func(t *testing.T) {
			g := NewWithT(t)
			actions, err := Plan(in)
			g.Expect(err).NotTo(HaveOccurred())
			for _, a := range actions {
				for _, content := range hostile {
					if a.Change == nil {
						continue
					}
					live := outcomeOf(t, Action{Do: Apply, Object: a.Object})
					for k, v := range (&unstructured.Unstructured{Object: content}).DeepCopy().Object {
						live.Object[k] = v
					}
					got, err := changed(a, live)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(got.GetName()).To(Equal(a.Object.GetName()))
				}
			}
		})
	}
	t.Run("When the hosted cluster's objects are nonsense the plan should be made all the same", func(t *testing.T) {
		g := NewWithT(t)
		in := scenario(t, "plain")
		for key := range wanted(in.HCP) {
			in.Hosted.Objects[key] = map[string]any{"spec": []any{}, "status": "x", "data": map[string]any{"kubeadmin": int64(1), "ca-bundle.crt": []any{}}, "metadata": map[string]any{"annotations": "x"}}
		}
		_, err := Plan(in)
		g.Expect(err).To(MatchError(And(HavePrefix("global pull secret: "), ContainSubstring("is not of type kubernetes.io/dockerconfigjson"), Not(ContainSubstring("\n")))), "the only object whose meaning is the user's")
	})
	t.Run("When the hosted cluster's hash of the password would take hours to compare it should be replaced", func(t *testing.T) {
		g := NewWithT(t)
		in := scenario(t, "plain")
		in.Hosted.Objects[kubeadminKey] = map[string]any{"data": map[string]any{"kubeadmin": base64.StdEncoding.EncodeToString([]byte("$2a$31$" + strings.Repeat("a", 53)))}}
		actions, err := kubeadminUser(in)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(outcomeOf(t, actions[0]).Object["data"]).To(HaveKeyWithValue("kubeadmin", base64.StdEncoding.EncodeToString([]byte("hash of password of kubeadmin-password"))))
	})
}
