// Package kickstart makes a package of objects: it sorts them into phases, adds probes, and makes parameters of what differs between
// installations.
package kickstart

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/api/packages/v1alpha1"
)

// Parameters are what can be made parameters of.
var Parameters = []string{"namespaces", "replicas", "tolerations", "nodeselectors", "resources", "env", "images"}

// phases in order, and the kinds that belong to them; all others belong to the last.
var phases = []struct {
	name  string
	kinds []string
}{
	{"namespaces", []string{"Namespace"}},
	{"policies", []string{"ResourceQuota", "LimitRange", "PriorityClass", "NetworkPolicy", "HorizontalPodAutoscaler", "PodDisruptionBudget"}},
	{"rbac", []string{"ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}},
	{"crds", []string{"CustomResourceDefinition"}},
	{"storage", []string{"PersistentVolume", "PersistentVolumeClaim", "StorageClass"}},
	{"deploy", []string{"Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Pod", "Job", "CronJob", "Service", "Secret", "ConfigMap"}},
	{"publish", []string{"Ingress", "APIService", "Route", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}},
	{"other", nil},
}

func phaseOf(kind string) string {
	for _, p := range phases {
		if slices.Contains(p.kinds, kind) {
			return p.name
		}
	}
	return "other"
}

// Result is a package.
type Result struct {
	// Files by path.
	Files map[string][]byte
	// Objects is how many there are.
	Objects int
	// Unprobed are kinds without probes.
	Unprobed []string
}

// Make makes a package of objects. parametrize has some of Parameters, or "all".
func Make(name string, objects []unstructured.Unstructured, parametrize []string) (*Result, error) {
	if err := check(objects, parametrize); err != nil {
		return nil, err
	}
	if slices.Contains(parametrize, "all") {
		parametrize = Parameters
	}
	objects = withNamespaces(objects)
	out := &Result{Files: map[string][]byte{}, Objects: len(objects)}
	params := newParameters(parametrize)
	used := map[string]bool{}
	kinds := map[schema.GroupKind]bool{}
	for i := range objects {
		obj := objects[i].DeepCopy()
		phase := phaseOf(obj.GetKind())
		used[phase] = true
		kinds[obj.GroupVersionKind().GroupKind()] = true
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.PhaseAnnotation] = phase
		obj.SetAnnotations(annotations)
		delete(obj.Object, "status")
		text, templated, err := params.render(obj)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		path := out.free(fmt.Sprintf("%s/%s.%s", phase, obj.GetName(), strings.ToLower(obj.GetKind())), templated)
		out.Files[path] = text
	}
	m, err := manifestOf(name, used, kinds, params, out)
	if err != nil {
		return nil, err
	}
	out.Files["manifest.yaml"] = m
	return out, nil
}

// free is a path that no file has.
func (r *Result) free(base string, templated bool) string {
	base = strings.ToLower(base)
	for i := 0; ; i++ {
		path := base
		if i > 0 {
			path = fmt.Sprintf("%s-%d", base, i)
		}
		_, plain := r.Files[path+".yaml"]
		_, template := r.Files[path+".yaml.gotmpl"]
		switch {
		case plain || template:
		case templated:
			return path + ".yaml.gotmpl"
		default:
			return path + ".yaml"
		}
	}
}

func check(objects []unstructured.Unstructured, parametrize []string) error {
	for _, p := range parametrize {
		if p != "all" && !slices.Contains(Parameters, p) {
			return fmt.Errorf("unknown parameter %q: use %s or all", p, strings.Join(Parameters, ", "))
		}
	}
	if len(objects) == 0 {
		return errors.New("no objects found")
	}
	seen := map[string]bool{}
	var errs []error
	for i := range objects {
		o := &objects[i]
		metadata, ok := o.Object["metadata"].(map[string]any)
		if !ok {
			errs = append(errs, fmt.Errorf("object %d: metadata is missing", i))
			continue
		}
		if name, ok := metadata["name"].(string); !ok || name == "" || strings.ContainsAny(name, "/\\") {
			errs = append(errs, fmt.Errorf("object %d: metadata.name is missing or invalid", i))
			continue
		}
		if gvk := o.GroupVersionKind(); gvk.Kind == "" || gvk.Version == "" || strings.ContainsAny(gvk.Kind, "/\\.") {
			errs = append(errs, fmt.Errorf("object %d: apiVersion or kind is missing or invalid", i))
			continue
		}
		key := fmt.Sprintf("%s %s/%s", o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName())
		if seen[key] {
			errs = append(errs, fmt.Errorf("object %d: duplicate %s", i, key))
		}
		seen[key] = true
	}
	return errors.Join(errs...)
}

// withNamespaces adds the Namespaces that objects are in.
func withNamespaces(objects []unstructured.Unstructured) []unstructured.Unstructured {
	have, need := map[string]bool{}, map[string]bool{}
	for i := range objects {
		if objects[i].GetKind() == "Namespace" {
			have[objects[i].GetName()] = true
		}
		if ns := objects[i].GetNamespace(); ns != "" {
			need[ns] = true
		}
	}
	var missing []string
	for ns := range need {
		if !have[ns] {
			missing = append(missing, ns)
		}
	}
	sort.Strings(missing)
	for _, ns := range missing {
		objects = append(objects, unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ns}}})
	}
	return objects
}

func manifestOf(name string, used map[string]bool, kinds map[schema.GroupKind]bool, params *parameters, out *Result) ([]byte, error) {
	spec := map[string]any{"scopes": []any{manifests.PackageManifestScopeCluster, manifests.PackageManifestScopeNamespaced}}
	var list, probes []any
	for _, p := range phases {
		if used[p.name] {
			list = append(list, map[string]any{"name": p.name})
		}
	}
	spec["phases"] = list
	sorted := make([]schema.GroupKind, 0, len(kinds))
	for k := range kinds {
		sorted = append(sorted, k)
	}
	slices.SortFunc(sorted, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range sorted {
		if found := probesOf(k); found != nil {
			probes = append(probes, map[string]any{"selector": map[string]any{"kind": map[string]any{"group": k.Group, "kind": k.Kind}}, "probes": found})
		} else if !plain[k.Kind] {
			out.Unprobed = append(out.Unprobed, k.String())
		}
	}
	if probes != nil {
		spec["availabilityProbes"] = probes
	}
	manifest := map[string]any{
		"apiVersion": manifests.GroupVersion.String(), "kind": "PackageManifest", "metadata": map[string]any{"name": name}, "spec": spec,
	}
	if schema := params.schema(); schema != nil {
		spec["config"] = map[string]any{"openAPIV3Schema": schema}
		manifest["test"] = map[string]any{"template": []any{map[string]any{
			"name": "defaults", "context": map[string]any{"package": map[string]any{"metadata": map[string]any{"name": name, "namespace": "default"}}},
		}}}
	}
	return yaml.Marshal(manifest)
}
