package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/testenv"
)

// ruleFile holds cases for every rule of a kind; see the comment in each file.
type ruleFile struct {
	// Base names the example that cases start from, or holds the object itself.
	Base string `json:"base"`
	// Bases are other starting points.
	Bases map[string]struct {
		From string         `json:"from"`
		With map[string]any `json:"with"`
	} `json:"bases"`
	// Unreachable says of rules, by "path: message", why nothing can break them.
	Unreachable map[string]string `json:"unreachable"`
	Rules       []ruleCases       `json:"rules"`
}

type ruleCases struct {
	At   paths          `json:"at"`
	Base string         `json:"base"`
	Old  any            `json:"old"`
	Bad  map[string]any `json:"bad"`
	Good []any          `json:"good"`
}

// paths is one path or a list of them.
type paths []string

func (p *paths) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*p = paths{one}
		return nil
	}
	var many []string
	err := json.Unmarshal(raw, &many)
	*p = many
	return err
}

func readRules(t *testing.T, kind string) *ruleFile {
	t.Helper()
	raw, err := os.ReadFile("testdata/rules/" + kind + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := &ruleFile{}
	if err := yaml.UnmarshalStrict(raw, f); err != nil {
		t.Fatalf("reading the rules of %s: %v", kind, err)
	}
	return f
}

// object makes the starting point of a case.
func (f *ruleFile) object(t *testing.T, kind, base string) *unstructured.Unstructured {
	t.Helper()
	from, with := base, map[string]any(nil)
	if b, ok := f.Bases[base]; ok {
		from, with = b.From, b.With
	}
	if from == "" {
		from = f.Base
	}
	var obj *unstructured.Unstructured
	if strings.Contains(from, "apiVersion:") {
		obj = parse(t, from)
	} else {
		all := manifests(t, examples+"/"+from)
		i := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
		if i < 0 {
			t.Fatalf("%s has no %s", from, kind)
		}
		obj = all[i]
	}
	mergeInto(obj.Object, runtime.DeepCopyJSON(with))
	return obj
}

// set merges or puts value at a path of obj.
func set(t *testing.T, obj map[string]any, path string, value any) {
	t.Helper()
	if path == "" {
		mergeInto(obj, value.(map[string]any))
		return
	}
	name, rest, _ := strings.Cut(path, ".")
	name, item := strings.CutSuffix(name, "[]")
	name, entry := strings.CutSuffix(name, "{}")
	switch {
	case item:
		items, _ := obj[name].([]any)
		if len(items) == 0 {
			t.Fatalf("the base has no item at %s", path)
		}
		if below, ok := items[0].(map[string]any); ok && rest == "" {
			mergeInto(below, value.(map[string]any))
		} else if ok {
			set(t, below, rest, value)
		} else {
			items[0] = value
		}
	case entry:
		set(t, obj, name, map[string]any{"key": value})
	case rest != "":
		below, ok := obj[name].(map[string]any)
		if !ok {
			below = map[string]any{}
			obj[name] = below
		}
		set(t, below, rest, value)
	default:
		below, isMap := obj[name].(map[string]any)
		if with, ok := value.(map[string]any); ok {
			if !isMap {
				below = map[string]any{}
				obj[name] = below
			}
			mergeInto(below, runtime.DeepCopyJSON(with))
			return
		}
		obj[name] = runtime.DeepCopyJSONValue(value)
	}
}

// messages lists the rules of a kind: path to messages.
func messages(crd *apiextensionsv1.CustomResourceDefinition) map[string][]string {
	all := map[string][]string{}
	var walk func(s *apiextensionsv1.JSONSchemaProps, path string)
	walk = func(s *apiextensionsv1.JSONSchemaProps, path string) {
		for _, rule := range s.XValidations {
			all[path] = append(all[path], rule.Message)
		}
		for name, prop := range s.Properties {
			walk(&prop, strings.TrimPrefix(path+"."+name, "."))
		}
		if s.Items != nil && s.Items.Schema != nil {
			walk(s.Items.Schema, path+"[]")
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			walk(s.AdditionalProperties.Schema, path+"{}")
		}
	}
	walk(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "")
	return all
}

// ruleTester asks an API server about cases.
type ruleTester struct {
	client client.Client
	ns     string
	status bool // the kind has a status of its own
}

// write creates obj, or changes it when it is stored, and its status when the path is in there.
func (r *ruleTester) write(t *testing.T, obj *unstructured.Unstructured, path string, dryRun bool) error {
	status := r.status && (path == "status" || strings.HasPrefix(path, "status."))
	if obj.GetResourceVersion() == "" && (!status || !dryRun) {
		var options []client.CreateOption
		if dryRun {
			options = append(options, client.DryRunAll)
		}
		state := obj.Object["status"]
		if err := r.client.Create(t.Context(), obj, options...); err != nil || !status {
			return err
		}
		obj.Object["status"] = state
	}
	if status {
		var options []client.SubResourceUpdateOption
		if dryRun {
			options = append(options, client.DryRunAll)
		}
		return r.client.Status().Update(t.Context(), obj, options...)
	}
	var options []client.UpdateOption
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	return r.client.Update(t.Context(), obj, options...)
}

// run tries the cases of one path.
func (r *ruleTester) run(t *testing.T, base *unstructured.Unstructured, path string, c ruleCases) {
	g := NewWithT(t)
	base.SetNamespace(r.ns)
	if base.GetName() != "cluster" {
		base.SetName("")
		base.SetGenerateName("rule-")
	}
	if c.Old != nil {
		set(t, base.Object, path, c.Old)
	}
	if c.Old != nil || strings.HasPrefix(path, "status") {
		g.Expect(r.write(t, base, path, false)).To(Succeed(), "what is stored first must be valid")
		defer func() { g.Expect(r.client.Delete(t.Context(), base)).To(Succeed()) }()
	}
	for _, value := range c.Good {
		obj := base.DeepCopy()
		set(t, obj.Object, path, value)
		g.Expect(r.write(t, obj, path, true)).To(Succeed(), "must be accepted: %v", value)
	}
	field := strings.ReplaceAll(path, "[]", "[0]")
	for _, message := range slices.Sorted(maps.Keys(c.Bad)) {
		obj := base.DeepCopy()
		set(t, obj.Object, path, c.Bad[message])
		err := r.write(t, obj, path, true)
		g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "must be rejected: %v, got %v", c.Bad[message], err)
		g.Expect(err.Error()).To(ContainSubstring(": "+message), "for %v", c.Bad[message])
		if field != "" && !strings.HasSuffix(field, "{}") {
			g.Expect(err.Error()).To(ContainSubstring(field + ": "))
		}
	}
}

// tryRules runs the cases of a kind for every rule that the definition has, and fails when a rule has none.
func tryRules(t *testing.T, kind string, crd *apiextensionsv1.CustomResourceDefinition, f *ruleFile, convert func(*unstructured.Unstructured)) {
	t.Helper()
	env := testenv.Start(t)
	r := &ruleTester{client: env.Client(t, runtime.NewScheme()), ns: env.Namespace(t), status: crd.Spec.Versions[0].Subresources.Status != nil}
	if crd.Spec.Scope == apiextensionsv1.ClusterScoped {
		r.ns = ""
	}
	has := messages(crd)
	tried := map[string]bool{}
	for i, c := range f.Rules {
		found := false
		for _, path := range c.At {
			bad := maps.Clone(c.Bad)
			maps.DeleteFunc(bad, func(message string, _ any) bool { return !slices.Contains(has[path], message) })
			if len(bad) == 0 {
				continue // another kind that shares the file has the rule
			}
			found = true
			for message := range bad {
				tried[path+": "+message] = true
			}
			t.Run(fmt.Sprintf("%s/%d", path, i), func(t *testing.T) {
				obj := f.object(t, kind, c.Base)
				if convert != nil {
					convert(obj)
				}
				r.run(t, obj, path, ruleCases{Old: c.Old, Bad: bad, Good: c.Good})
			})
		}
		if !found && convert == nil {
			t.Errorf("there is no rule at %v that says any of %q", c.At, slices.Sorted(maps.Keys(c.Bad)))
		}
	}
	for path, all := range has {
		for _, message := range all {
			if at := path + ": " + message; !tried[at] && f.Unreachable[at] == "" {
				t.Errorf("no case breaks the rule at %s", at)
			}
		}
	}
}

// asControlPlane turns a HostedCluster into the HostedControlPlane that the operator makes of it, as far as rules are concerned.
func asControlPlane(obj *unstructured.Unstructured) {
	obj.SetKind("HostedControlPlane")
	spec := obj.Object["spec"].(map[string]any)
	spec["releaseImage"] = "quay.io/a/b:1"
	delete(spec, "release")
	delete(spec, "controlPlaneRelease")
	for name, value := range map[string]any{
		"infraID": "a", "issuerURL": "https://a", "sshKey": map[string]any{}, "dns": map[string]any{"baseDomain": ""},
		"etcd": map[string]any{"managementType": "Managed", "managed": map[string]any{"storage": map[string]any{"type": "PersistentVolume"}}},
	} {
		if _, ok := spec[name]; !ok {
			spec[name] = value
		}
	}
	status, ok := obj.Object["status"].(map[string]any)
	if !ok {
		return
	}
	status["ready"], status["initialized"] = false, false
	if version, ok := status["version"]; ok {
		status["versionStatus"] = version
		delete(status, "version")
	}
}

// everyRule tries every rule of every kind of the set with previews, which must be installed.
func everyRule(t *testing.T) {
	crds, err := config.CRDs(config.TechPreviewSet)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, crd := range crds {
		kind := crd.Spec.Names.Kind
		if len(messages(crd)) == 0 || strings.HasPrefix(kind, "Local") {
			continue // platform Local tests its own
		}
		t.Run(kind, func(t *testing.T) {
			if kind == "HostedControlPlane" {
				tryRules(t, "HostedCluster", crd, readRules(t, "HostedCluster"), asControlPlane)
				return
			}
			tryRules(t, kind, crd, readRules(t, kind), nil)
		})
	}
}
