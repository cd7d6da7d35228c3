package kickstart

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Annotations of OLM.
const (
	bundlePackage     = "operators.operatorframework.io.bundle.package.v1"
	suggestsNamespace = "operatorframework.io/suggested-namespace"
	targetNamespaces  = "olm.targetNamespaces"
)

// clusterServiceVersion is what of an operator's description becomes objects.
type clusterServiceVersion struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		InstallModes []struct {
			Type      string `json:"type"`
			Supported bool   `json:"supported"`
		} `json:"installModes"`
		Install struct {
			Strategy string `json:"strategy"`
			Spec     struct {
				Deployments []struct {
					Name  string            `json:"name"`
					Label map[string]string `json:"label"`
					Spec  map[string]any    `json:"spec"`
				} `json:"deployments"`
				Permissions        []permission `json:"permissions"`
				ClusterPermissions []permission `json:"clusterPermissions"`
			} `json:"spec"`
		} `json:"install"`
		Webhooks    []any `json:"webhookdefinitions"`
		APIServices struct {
			Owned []any `json:"owned"`
		} `json:"apiservicedefinitions"`
	} `json:"spec"`
}

type permission struct {
	ServiceAccount string `json:"serviceAccountName"`
	Rules          []any  `json:"rules"`
}

// clusterScoped are the kinds without a namespace that a bundle may have.
var clusterScoped = map[string]bool{
	"Namespace": true, "CustomResourceDefinition": true, "ClusterRole": true, "ClusterRoleBinding": true, "PriorityClass": true,
	"ConsoleYAMLSample": true, "ConsoleQuickStart": true, "ConsoleCLIDownload": true, "ConsoleLink": true,
}

// Bundle gives the objects that OLM would make of a bundle: manifests and annotations (metadata/annotations.yaml) are its files. Everything is
// in one namespace, the one that the operator suggests, else that of the package's name with -system. An operator that can watch all
// namespaces does so, else its own alone.
func Bundle(manifests map[string][]byte, annotations []byte) ([]unstructured.Unstructured, error) {
	b := bundle{}
	for _, file := range slices.Sorted(maps.Keys(manifests)) {
		if err := b.read(manifests[file]); err != nil {
			return nil, fmt.Errorf("manifests/%s: %w", file, err)
		}
	}
	if b.csv == nil {
		return nil, errors.New("no ClusterServiceVersion in manifests: it is no bundle of format registry+v1")
	}
	if err := b.check(); err != nil {
		return nil, fmt.Errorf("ClusterServiceVersion %s: %w", b.csv.Metadata.Name, err)
	}
	meta := struct {
		Annotations map[string]string `json:"annotations"`
	}{}
	if err := yaml.Unmarshal(annotations, &meta); err != nil {
		return nil, fmt.Errorf("metadata/annotations.yaml: %w", err)
	}
	name, _, _ := strings.Cut(b.csv.Metadata.Name, ".")
	b.namespace = cmp.Or(b.csv.Metadata.Annotations[suggestsNamespace], cmp.Or(meta.Annotations[bundlePackage], name)+"-system")
	return b.objects(), nil
}

// bundle is the content of one.
type bundle struct {
	csv       *clusterServiceVersion
	others    []unstructured.Unstructured
	namespace string
}

func (b *bundle) read(data []byte) error {
	obj := map[string]any{}
	if err := yaml.Unmarshal(data, &obj); err != nil {
		return err
	}
	if len(obj) == 0 {
		return nil
	}
	if obj["kind"] != "ClusterServiceVersion" {
		b.others = append(b.others, unstructured.Unstructured{Object: obj})
		return nil
	}
	if b.csv != nil {
		return errors.New("there is another ClusterServiceVersion")
	}
	b.csv = &clusterServiceVersion{}
	return yaml.Unmarshal(data, b.csv)
}

// check refuses what OLM does while an operator runs, which no object can stand for.
func (b *bundle) check() error {
	spec := b.csv.Spec
	switch {
	case b.csv.Metadata.Name == "":
		return errors.New("metadata.name is missing")
	case spec.Install.Strategy != "" && spec.Install.Strategy != "deployment":
		return fmt.Errorf("spec.install.strategy %q is not supported: only deployment is", spec.Install.Strategy)
	case len(spec.Webhooks) > 0:
		return errors.New("spec.webhookdefinitions are not supported, as OLM makes their certificates: unpack the bundle, add webhooks and certificates, and give its manifests with -f")
	case len(spec.APIServices.Owned) > 0:
		return errors.New("spec.apiservicedefinitions.owned are not supported, as OLM makes their certificates: unpack the bundle, add certificates, and give its manifests with -f")
	case len(spec.Install.Spec.Deployments) == 0:
		return errors.New("spec.install.spec.deployments is empty")
	}
	return nil
}

// everywhere tells whether the operator watches all namespaces.
func (b *bundle) everywhere() bool {
	for _, mode := range b.csv.Spec.InstallModes {
		if mode.Type == "AllNamespaces" {
			return mode.Supported
		}
	}
	return false
}

func (b *bundle) objects() []unstructured.Unstructured {
	var out []unstructured.Unstructured
	local, cluster := b.csv.Spec.Install.Spec.Permissions, b.csv.Spec.Install.Spec.ClusterPermissions
	accounts := map[string]bool{}
	for _, p := range slices.Concat(local, cluster) {
		accounts[cmp.Or(p.ServiceAccount, "default")] = true
	}
	for _, d := range b.csv.Spec.Install.Spec.Deployments {
		if name, _, _ := unstructured.NestedString(d.Spec, "template", "spec", "serviceAccountName"); name != "" {
			accounts[name] = true
		}
	}
	delete(accounts, "default") // every namespace has it
	for _, o := range b.others {
		if o.GetKind() == "ServiceAccount" {
			delete(accounts, o.GetName())
		}
		if !clusterScoped[o.GetKind()] {
			o.SetNamespace(b.namespace)
		}
		out = append(out, o)
	}
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		out = append(out, b.object("v1", "ServiceAccount", b.namespace, name, nil))
	}
	if b.everywhere() {
		// What an operator may do in the namespaces that it watches, it may do in all.
		for i := range local {
			local[i].Rules = append(slices.Clone(local[i].Rules),
				map[string]any{"apiGroups": []any{""}, "resources": []any{"namespaces"}, "verbs": []any{"get", "list", "watch"}})
		}
		cluster, local = slices.Concat(cluster, local), nil
	}
	out = append(out, b.grants("Role", b.namespace, local)...)
	out = append(out, b.grants("ClusterRole", "", cluster)...)
	return append(out, b.deployments()...)
}

// grants are roles and their bindings, one for each permission. Their names have a number where an account has several.
func (b *bundle) grants(kind, namespace string, permissions []permission) (out []unstructured.Unstructured) {
	const rbac = "rbac.authorization.k8s.io"
	count := map[string]int{}
	for _, p := range permissions {
		account := cmp.Or(p.ServiceAccount, "default")
		name := b.csv.Metadata.Name + "-" + account
		if count[account]++; count[account] > 1 {
			name = fmt.Sprintf("%s-%d", name, count[account])
		}
		out = append(out,
			b.object(rbac+"/v1", kind, namespace, name, map[string]any{"rules": p.Rules}),
			b.object(rbac+"/v1", kind+"Binding", namespace, name, map[string]any{
				"roleRef":  map[string]any{"apiGroup": rbac, "kind": kind, "name": name},
				"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": b.namespace, "name": account}},
			}))
	}
	return out
}

func (b *bundle) deployments() (out []unstructured.Unstructured) {
	watched := b.namespace
	if b.everywhere() {
		watched = ""
	}
	for _, d := range b.csv.Spec.Install.Spec.Deployments {
		obj := b.object("apps/v1", "Deployment", b.namespace, d.Name, map[string]any{"spec": d.Spec})
		if len(d.Label) > 0 {
			obj.SetLabels(d.Label)
		}
		// Operators read from here, by the downward API, where to work.
		annotations, _, _ := unstructured.NestedStringMap(obj.Object, "spec", "template", "metadata", "annotations")
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[targetNamespaces] = watched
		_ = unstructured.SetNestedStringMap(obj.Object, annotations, "spec", "template", "metadata", "annotations") // what is no map there, the API server refuses
		out = append(out, obj)
	}
	return out
}

func (b *bundle) object(apiVersion, kind, namespace, name string, content map[string]any) unstructured.Unstructured {
	obj := unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	obj.SetName(name)
	if namespace != "" {
		obj.SetNamespace(namespace)
	}
	maps.Copy(obj.Object, content)
	return obj
}
