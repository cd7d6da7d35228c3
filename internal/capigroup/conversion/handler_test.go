package conversion

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // because it is what old clients ask for
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconversion "sigs.k8s.io/controller-runtime/pkg/conversion"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/capigroup/translate"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// definitions is a client.Reader of CustomResourceDefinitions' labels.
type definitions struct {
	client.Reader
	labels map[string]map[string]string
	asked  atomic.Int32
}

func (d *definitions) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	d.asked.Add(1)
	labels, ok := d.labels[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, key.Name)
	}
	obj.SetLabels(labels)
	return nil
}

func newTestHandler(t testing.TB, labels map[string]map[string]string) (*Handler, *definitions, *clocktesting.FakeClock) {
	t.Helper()
	crds, clock := &definitions{labels: labels}, clocktesting.NewFakeClock(noon)
	h, err := NewHandler(crds, clock)
	if err != nil {
		t.Fatal(err)
	}
	return h, crds, clock
}

func review(t testing.TB, h http.Handler, desired string, objects ...string) *apiextensionsv1.ConversionResponse {
	t.Helper()
	req := &apiextensionsv1.ConversionReview{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"},
		Request: &apiextensionsv1.ConversionRequest{UID: "u-1", DesiredAPIVersion: desired}}
	for _, o := range objects {
		req.Request.Objects = append(req.Request.Objects, runtime.RawExtension{Raw: []byte(o)})
	}
	raw, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/convert", bytes.NewReader(raw)))
	answer := &apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil || answer.Response == nil {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	if answer.Kind != "ConversionReview" || answer.APIVersion != "apiextensions.k8s.io/v1" || answer.Response.UID != "u-1" {
		t.Errorf("answer is %+v", answer)
	}
	return answer.Response
}

const (
	machineV1beta2 = `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m","finalizers":["machine.cluster.x-k8s.io"],"labels":{"cluster.x-k8s.io/cluster-name":"c"},"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachineSet","name":"s","uid":"u"}]},"spec":{"clusterName":"c","bootstrap":{"dataSecretName":"x"},"infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"LocalMachine","name":"m"}}}`
	machineV1beta1 = `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":{"name":"m"},"spec":{"clusterName":"c","bootstrap":{"dataSecretName":"x"},"infrastructureRef":{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta7","kind":"LocalMachine","name":"m","namespace":"n"}}}`
)

var privately = strings.NewReplacer(
	`"apiVersion":"cluster.x-k8s.io/`, `"apiVersion":"cluster.hypershift.openshift.io/`,
	`"apiVersion":"infrastructure.cluster.x-k8s.io/`, `"apiVersion":"infrastructure.cluster.hypershift.openshift.io/`,
	`"apiGroup":"infrastructure.cluster.x-k8s.io"`, `"apiGroup":"infrastructure.cluster.hypershift.openshift.io"`)

func TestReview(t *testing.T) {
	labels := map[string]map[string]string{
		"localmachines.infrastructure.cluster.x-k8s.io":                {"cluster.x-k8s.io/v1beta2": "v1beta1"},
		"localmachines.infrastructure.cluster.hypershift.openshift.io": {"cluster.x-k8s.io/v1beta2": "v1_v1beta9_v2alpha1", "cluster.x-k8s.io/v1beta1": "v7"},
	}
	t.Run("When a private Machine is converted to the older version it should find the version in the private definition", func(t *testing.T) {
		g := NewWithT(t)
		h, _, _ := newTestHandler(t, labels)
		got := review(t, h, "cluster.hypershift.openshift.io/v1beta1", privately.Replace(machineV1beta2))
		g.Expect(got.Result.Status).To(Equal("Success"), got.Result.Message)
		m := &clusterv1beta1.Machine{}
		g.Expect(json.Unmarshal(got.ConvertedObjects[0].Raw, m)).To(Succeed())
		g.Expect(m.APIVersion).To(Equal("cluster.hypershift.openshift.io/v1beta1"))
		g.Expect(m.OwnerReferences[0].APIVersion).To(Equal("cluster.hypershift.openshift.io/v1beta2"))
		g.Expect(m.Spec.InfrastructureRef.APIVersion).To(Equal("infrastructure.cluster.hypershift.openshift.io/v1"))
		g.Expect(m.Finalizers).To(Equal([]string{"machine.cluster.x-k8s.io"}))
		g.Expect(m.Annotations["cluster.x-k8s.io/conversion-data"]).NotTo(ContainSubstring(translate.Private), "what is kept is in standard names")
	})
	t.Run("When a standard Machine is converted it should find the version in the standard definition", func(t *testing.T) {
		g := NewWithT(t)
		h, _, _ := newTestHandler(t, labels)
		got := review(t, h, "cluster.x-k8s.io/v1beta1", machineV1beta2)
		g.Expect(string(got.ConvertedObjects[0].Raw)).To(ContainSubstring(`"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta1"`))
	})
	t.Run("When a Machine of the older version is converted it should keep the group of what it names", func(t *testing.T) {
		g := NewWithT(t)
		h, _, _ := newTestHandler(t, nil)
		got := review(t, h, "cluster.hypershift.openshift.io/v1beta2", privately.Replace(machineV1beta1), privately.Replace(machineV1beta1))
		g.Expect(got.ConvertedObjects).To(HaveLen(2))
		m := &clusterv1.Machine{}
		g.Expect(json.Unmarshal(got.ConvertedObjects[1].Raw, m)).To(Succeed())
		g.Expect(m.Spec.InfrastructureRef.APIGroup).To(Equal("infrastructure.cluster.hypershift.openshift.io"))
	})
	t.Run("When one object can't be converted it should convert none, and quote none", func(t *testing.T) {
		for name, tc := range map[string]struct{ desired, object, want string }{
			"of another group":  {"cluster.hypershift.openshift.io/v1beta2", machineV1beta1, "another group"},
			"of no known kind":  {"cluster.x-k8s.io/v1beta2", strings.Replace(machineV1beta1, `"Machine"`, `"Nothing"`, 1), "Nothing is not known"},
			"to its version":    {"cluster.x-k8s.io/v1beta1", machineV1beta1, "does not convert"},
			"to no version":     {"cluster.x-k8s.io/v9", machineV1beta1, "is not known"},
			"of a wrong type":   {"cluster.x-k8s.io/v1beta2", `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","spec":"geheim"}`, "parsing"},
			"of no JSON":        {"cluster.x-k8s.io/v1beta2", `[]`, "parsing"},
			"outside the rules": {"apps/v1", machineV1beta1, "none of Cluster API's"},
			"without a version": {"cluster.x-k8s.io/v1beta1", machineV1beta2, "CustomResourceDefinition localmachines.infrastructure.cluster.x-k8s.io"},
		} {
			g := NewWithT(t)
			h, _, _ := newTestHandler(t, nil)
			got := review(t, h, tc.desired, tc.object)
			g.Expect(got.Result.Status).To(Equal("Failure"), name)
			g.Expect(got.ConvertedObjects).To(BeEmpty(), name)
			g.Expect(got.Result.Message).To(ContainSubstring(tc.want), name)
			g.Expect(got.Result.Message).NotTo(ContainSubstring("geheim"), name)
		}
	})
	t.Run("When the second of two objects can't be converted it should convert none", func(t *testing.T) {
		g := NewWithT(t)
		h, _, _ := newTestHandler(t, nil)
		got := review(t, h, "cluster.x-k8s.io/v1beta2", machineV1beta1, machineV1beta2)
		g.Expect(got.ConvertedObjects).To(BeEmpty())
		g.Expect(got.Result.Message).To(HavePrefix("object 2 of 2: "))
	})
	t.Run("When a review is none it should say so", func(t *testing.T) {
		h, _, _ := newTestHandler(t, nil)
		for _, body := range []string{"", "{", "[]", "{}", `{"request":7}`} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/convert", strings.NewReader(body)))
			NewWithT(t).Expect(w.Code).To(Equal(http.StatusBadRequest), body)
		}
	})
	t.Run("When thousands of references name the same kind it should ask for its definition once a minute", func(t *testing.T) {
		g := NewWithT(t)
		h, crds, clock := newTestHandler(t, labels)
		many := make([]string, 1000)
		for i := range many {
			many[i] = machineV1beta2
		}
		g.Expect(review(t, h, "cluster.x-k8s.io/v1beta1", many...).ConvertedObjects).To(HaveLen(1000))
		g.Expect(crds.asked.Load()).To(Equal(int32(1)))
		clock.Step(knownFor + time.Second)
		review(t, h, "cluster.x-k8s.io/v1beta1", machineV1beta2)
		g.Expect(crds.asked.Load()).To(Equal(int32(2)))
	})
}

// TestAsUpstream compares with Cluster API's functions, called directly, for random objects of every kind, in both groups.
func TestAsUpstream(t *testing.T) {
	h, _, _ := newTestHandler(t, nil)
	h.versions = newVersions(everything{}, clocktesting.NewFakePassiveClock(noon))
	crds, err := config.CAPICRDs()
	if err != nil {
		t.Fatal(err)
	}
	for gvk := range h.scheme.AllKnownTypes() {
		hub, err := h.scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := hub.(ctrlconversion.Hub); !ok {
			continue
		}
		spokeVersion := "v1beta1"
		if gvk.Group == "runtime.cluster.x-k8s.io" {
			spokeVersion = "v1alpha1"
		}
		t.Run(gvk.Kind, func(t *testing.T) {
			g := NewWithT(t)
			for seed := range int64(20) {
				body := randomObject(g, crds, gvk, seed)
				spoke, err := h.scheme.New(schema.GroupVersionKind{Group: gvk.Group, Version: spokeVersion, Kind: gvk.Kind})
				g.Expect(err).NotTo(HaveOccurred())
				src, err := h.scheme.New(gvk)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(json.Unmarshal(body, src)).To(Succeed())
				g.Expect(h.versions.in(t.Context(), false, func() error { return hubAndSpoke(src, spoke) })).To(Succeed())
				spoke.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: gvk.Group, Version: spokeVersion, Kind: gvk.Kind})
				want, err := json.Marshal(spoke)
				g.Expect(err).NotTo(HaveOccurred())

				plan, err := bodyOf(gvk.Group)
				g.Expect(err).NotTo(HaveOccurred())
				renamed := func(raw []byte) string {
					out, err := translate.Bytes(plan, nil, raw)
					g.Expect(err).NotTo(HaveOccurred())
					return string(out)
				}
				standard := review(t, h, gvk.Group+"/"+spokeVersion, string(body))
				g.Expect(standard.Result.Message).To(BeEmpty())
				g.Expect(string(standard.ConvertedObjects[0].Raw)).To(MatchJSON(want))
				private := review(t, h, translate.Group(gvk.Group)+"/"+spokeVersion, renamed(body))
				g.Expect(private.Result.Message).To(BeEmpty())
				g.Expect(renamed(private.ConvertedObjects[0].Raw)).To(MatchJSON(want))

				// And back: what the older version can't say is restored from the annotation.
				back := review(t, h, translate.Group(gvk.Group)+"/"+gvk.Version, string(private.ConvertedObjects[0].Raw))
				again := review(t, h, gvk.GroupVersion().String(), string(want))
				if err := h.versions.in(t.Context(), false, func() error { return hubAndSpoke(spoke, hub.DeepCopyObject()) }); err != nil {
					// Such as a ClusterClass whose status names other definitions of a variable than are kept: Cluster API's function refuses it.
					g.Expect(back.Result.Message).To(ContainSubstring(err.Error()))
					g.Expect(again.Result.Message).To(ContainSubstring(err.Error()))
					continue
				}
				g.Expect(back.Result.Message).To(BeEmpty())
				g.Expect(renamed(back.ConvertedObjects[0].Raw)).To(MatchJSON(again.ConvertedObjects[0].Raw))
			}
		})
	}
}

// everything is definitions of any name, with the label of the contract.
type everything struct{ client.Reader }

func (everything) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta1"})
	return nil
}

// randomObject fills the schema of a kind's definition with random values.
func randomObject(g *WithT, crds []*apiextensionsv1.CustomResourceDefinition, gvk schema.GroupVersionKind, seed int64) []byte {
	for _, crd := range crds {
		if crd.Spec.Group != gvk.Group || crd.Spec.Names.Kind != gvk.Kind {
			continue
		}
		r := rand.New(rand.NewSource(seed))
		obj, _ := fill(r, crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "", 0).(map[string]any)
		obj["apiVersion"], obj["kind"] = gvk.GroupVersion().String(), gvk.Kind
		obj["metadata"] = map[string]any{"name": "o", "labels": map[string]string{"cluster.x-k8s.io/cluster-name": "c"}, "finalizers": []string{"machine.cluster.x-k8s.io"}}
		raw, err := json.Marshal(obj)
		g.Expect(err).NotTo(HaveOccurred())
		return raw
	}
	g.Expect(errors.New(gvk.String() + " has no definition")).NotTo(HaveOccurred())
	return nil
}

func fill(r *rand.Rand, s *apiextensionsv1.JSONSchemaProps, name string, depth int) any {
	if len(s.Enum) > 0 {
		var v any
		_ = json.Unmarshal(s.Enum[r.Intn(len(s.Enum))].Raw, &v)
		return v
	}
	switch s.Type {
	case "":
		if !s.XIntOrString {
			return nil // free-form
		}
	case "object":
		out := map[string]any{}
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) { // in order, so that a seed always makes the same object
			prop := s.Properties[field]
			if depth > 0 && r.Intn(3) == 0 {
				continue
			}
			if v := fill(r, &prop, field, depth+1); v != nil {
				out[field] = v
			}
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			out["k"] = fill(r, s.AdditionalProperties.Schema, "k", depth+1)
		}
		return out
	case "array":
		out := make([]any, r.Intn(3))
		for i := range out {
			out[i] = fill(r, s.Items.Schema, name, depth+1)
		}
		return out
	case "integer", "number":
		return r.Intn(1000)
	case "boolean":
		return r.Intn(2) == 0
	}
	switch {
	case s.Format == "byte":
		return "QUJD"
	case s.Format == "date-time":
		return noon.Format(time.RFC3339)
	case name == "apiVersion":
		return "infrastructure.cluster.x-k8s.io/v1beta1"
	case name == "apiGroup":
		return "infrastructure.cluster.x-k8s.io"
	case s.XIntOrString:
		return fmt.Sprintf("%d%%", r.Intn(100))
	case strings.HasPrefix(s.Pattern, "^([0-9]+") || name == "nodeDrainTimeout":
		return "10s"
	}
	return fmt.Sprintf("x%d", r.Intn(1000))
}

func TestNames(t *testing.T) {
	for kind, want := range map[string]string{"LocalMachineTemplate": "localmachinetemplates", "Proxy": "proxies", "Gateway": "gateways", "MachineClass": "machineclasses",
		"OpenStackFloatingIPPool": "openstackfloatingippools", "HostedControlPlane": "hostedcontrolplanes"} {
		NewWithT(t).Expect(crdName(schema.GroupKind{Group: "g", Kind: kind})).To(Equal(want + ".g"))
	}
	NewWithT(t).Expect(resourceLabel("IPAddress")).To(Equal("ipaddresses"))
	NewWithT(t).Expect(resourceLabel("x")).To(Equal("other"))
	NewWithT(t).Expect(versionLabel("g/v99")).To(Equal("other"))
}
