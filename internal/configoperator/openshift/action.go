package openshift

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Do says what an Action does.
type Do string

const (
	// Apply makes the object have what is asked for; fields that nobody asks for stay.
	Apply Do = "apply"
	// Create makes the object unless there is one, of whatever content.
	Create Do = "create"
	// Edit changes what is there, or makes it.
	Edit Do = "edit"
	// EditPresent is Edit of an object that somebody else makes; without it nothing is done.
	EditPresent Do = "edit if present"
	// Delete deletes the object if it is there.
	Delete Do = "delete"
	// DeleteOwn is Delete of an object that has our label.
	DeleteOwn Do = "delete if ours"
)

// Action is what becomes of one object.
type Action struct {
	Do     Do
	Object client.Object
	// Change is what Edit does to the object. It gets what is there, or kind and name alone, and must give the same for the same, and must cope with any content.
	Change func(live map[string]any)
	// Management: the object is in the control plane namespace, not in the hosted cluster.
	Management bool
	// Infra: it is where virtual machines are, which may be another cluster.
	Infra bool
	// Awaits its namespace: without it nothing is done, since somebody else makes it.
	AwaitsNamespace bool
}

// Name is kind, and name with namespace, for messages.
func (a Action) Name() string {
	name := a.Object.GetName()
	if ns := a.Object.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return a.Object.GetObjectKind().GroupVersionKind().Kind + " " + name
}

// Kinds of the hosted cluster, as apiVersion and kind.
const (
	core         = "v1"
	configV1     = "config.openshift.io/v1"
	operatorV1   = "operator.openshift.io/v1"
	monitoringV1 = "monitoring.coreos.com/v1"
	rbacV1       = "rbac.authorization.k8s.io/v1"
	admissionV1  = "admissionregistration.k8s.io/v1"
)

// cluster is the name of most singletons.
const cluster = "cluster"

// reference is an object that has nothing but a name.
func reference(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// object is one with content: top-level fields beside metadata.
func object(apiVersion, kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	u := reference(apiVersion, kind, namespace, name)
	for k, v := range content {
		u.Object[k] = v
	}
	return u
}

func configMap(namespace, name string, data map[string]string) *unstructured.Unstructured {
	return object(core, "ConfigMap", namespace, name, map[string]any{"data": texts(data)})
}

func annotate(u *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	u.SetAnnotations(annotations)
	return u
}

func apply(objects ...*unstructured.Unstructured) (actions []Action) {
	for _, o := range objects {
		actions = append(actions, Action{Do: Apply, Object: o})
	}
	return actions
}

func edit(apiVersion, kind, namespace, name string, change func(live map[string]any)) Action {
	return Action{Do: Edit, Object: reference(apiVersion, kind, namespace, name), Change: change}
}

func remove(apiVersion, kind, namespace, name string) Action {
	return Action{Do: Delete, Object: reference(apiVersion, kind, namespace, name)}
}
