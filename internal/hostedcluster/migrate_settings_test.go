package hostedcluster

import (
	"reflect"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/release"
)

// ofStorage are the fields of a Reconciler that say where objects of Cluster API are stored and how they are reached. All others are what the
// installation says.
var ofStorage = []string{"Client", "Live", "Direct", "Scope", "PrivateCAPI", "Capabilities"}

// TestMoverSettings is about the programs of the control plane that a way back deploys.
func TestMoverSettings(t *testing.T) {
	type reaching struct {
		client.Client
		what string
	}
	c, other := reaching{what: "the proxy"}, reaching{what: "the management cluster"}
	r := &Reconciler{Client: c, Live: c, Direct: other, Releases: release.NewRegistryProvider(release.Options{}), Clock: clock.RealClock{}, Events: heard{},
		Scope: ptr.To("ours"), Management: &management.Cluster{}, Mirrors: &management.Mirrors{}, Admission: &admission.Queue{}, Journal: &journal.Book{},
		RandomID: func(int) string { return "" }, UUID: func() string { return "" }}
	fill(reflect.ValueOf(r).Elem())
	standard := newMover(r, other).standard
	from, to := reflect.ValueOf(r).Elem(), reflect.ValueOf(standard).Elem()
	for i := range from.NumField() {
		field := from.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		t.Run("When a rollback deploys programs it should go by the operator's "+field.Name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(from.Field(i).IsZero()).To(BeFalse(), "the test has to set it")
			if slices.Contains(ofStorage, field.Name) {
				g.Expect(same(from.Field(i), to.Field(i))).To(BeFalse())
				return
			}
			g.Expect(same(from.Field(i), to.Field(i))).To(BeTrue(), "it is %v, and should be %v", to.Field(i), from.Field(i))
		})
	}
	t.Run("When it works with standard types it should be as the operator for these is", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(standard.Client).To(BeIdenticalTo(other))
		g.Expect(standard.Live).To(BeIdenticalTo(other))
		g.Expect(standard.Direct).To(BeNil())
		g.Expect(standard.PrivateCAPI).To(BeFalse())
		g.Expect(standard.Scope).To(HaveValue(Equal(hyperv1.LegacyScope)))
		want := r.Capabilities
		want.ClusterAPI = true
		g.Expect(standard.Capabilities).To(Equal(want))
		g.Expect(r.Scope).To(HaveValue(Equal("ours")), "the operator's own settings were changed")
	})
}

// fill sets what is zero to something else, as far as that can be done without knowing what it is.
func fill(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		if !v.Type().Field(i).IsExported() || !f.IsZero() || v.Type().Field(i).Name == "ClusterAPI" {
			continue
		}
		switch f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("x")
		case reflect.Struct:
			fill(f)
		case reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
			f.SetMapIndex(reflect.ValueOf("key"), reflect.ValueOf("x"))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		}
	}
}

// same also compares functions, which are the same if their code is.
func same(a, b reflect.Value) bool {
	if a.Kind() == reflect.Func {
		return a.Pointer() == b.Pointer()
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}
