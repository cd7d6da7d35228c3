package api_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/testenv"
)

// oddCase is a manifest that somebody may well write, or a change to one, and whether the API server takes it.
type oddCase struct {
	Name string `json:"name"`
	// Base is the example that it starts from; empty: that of the kind.
	Base string         `json:"base"`
	With map[string]any `json:"with"`
	// Then is merged into the stored object.
	Then   map[string]any `json:"then"`
	Refuse bool           `json:"refuse"`
}

func TestVerdicts(t *testing.T) {
	env := testenv.Start(t)
	c := env.Client(t, runtime.NewScheme())
	ns := env.Namespace(t)
	for kind, base := range map[string]string{"HostedCluster": "none", "NodePool": "aws"} {
		raw, err := os.ReadFile("testdata/verdicts/" + kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var cases []oddCase
		if err := yaml.UnmarshalStrict(raw, &cases); err != nil {
			t.Fatalf("reading the cases of %s: %v", kind, err)
		}
		for _, tc := range cases {
			verdict := "taken"
			if tc.Refuse {
				verdict = "refused"
			}
			t.Run("When a "+kind+" is odd ("+tc.Name+") it should be "+verdict, func(t *testing.T) {
				if tc.Base == "" {
					tc.Base = base
				}
				obj := (&ruleFile{}).object(t, kind, tc.Base+".yaml")
				mergeInto(obj.Object, tc.With)
				obj.SetNamespace(ns)
				obj.SetName("")
				obj.SetGenerateName("odd-")
				err := tc.ask(t, c, obj)
				g := NewWithT(t)
				if tc.Refuse {
					g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
				} else {
					g.Expect(err).NotTo(HaveOccurred())
				}
			})
		}
	}
}

// ask returns what the API server says to the object, or to its change.
func (tc oddCase) ask(t *testing.T, c client.Client, obj *unstructured.Unstructured) error {
	t.Helper()
	if tc.Then == nil {
		err := c.Create(t.Context(), obj, client.DryRunAll, client.FieldValidation("Strict"))
		if err != nil && strings.Contains(err.Error(), "unknown field") {
			t.Fatalf("the case has a field that does not exist: %v", err)
		}
		return err
	}
	if err := c.Create(t.Context(), obj, client.FieldValidation("Strict")); err != nil {
		t.Fatalf("the object to change must be valid: %v", err)
	}
	mergeInto(obj.Object, tc.Then)
	err := c.Update(t.Context(), obj, client.DryRunAll)
	if deleteErr := c.Delete(t.Context(), obj); deleteErr != nil {
		t.Error(deleteErr)
	}
	return err
}
