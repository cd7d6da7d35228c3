// Package cloud holds what the platforms have in common whose machines a provider of Cluster API makes that is not ours.
package cloud

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// Infrastructure is the group of most providers' kinds.
const Infrastructure = "infrastructure.cluster.x-k8s.io"

// managedBy has a provider leave an infrastructure object to whoever made it.
const managedBy = "cluster.x-k8s.io/managed-by"

// Object makes an object of a provider's kind from a spec of ours, a struct with the fields of that kind that we set. Their Go types would bring
// the libraries of a cloud along.
func Object(gvk schema.GroupVersionKind, namespace, name string, spec any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the spec of %s %s: %w", gvk.Kind, name, err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	o.SetGroupVersionKind(gvk)
	if namespace != "" {
		o.SetNamespace(namespace)
	}
	if name != "" {
		o.SetName(name)
	}
	return o, nil
}

// Cluster makes the infrastructure object of a cluster. It refers back to the HostedCluster.
func Cluster(gvk schema.GroupVersionKind, hc *hyperv1.HostedCluster, namespace, name string, spec any) (*unstructured.Unstructured, error) {
	o, err := Object(gvk, namespace, name, spec)
	if err != nil {
		return nil, err
	}
	o.SetAnnotations(map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(hc)})
	return o, nil
}

// External is Cluster for an object that its provider leaves alone, so that nobody but us says that it is ready.
func External(gvk schema.GroupVersionKind, hc *hyperv1.HostedCluster, namespace, name string, spec any) (*unstructured.Unstructured, error) {
	o, err := Cluster(gvk, hc, namespace, name, spec)
	if err != nil {
		return nil, err
	}
	annotations := o.GetAnnotations()
	annotations[managedBy] = "external"
	o.SetAnnotations(annotations)
	return o, nil
}

// Ready is the status of infrastructure objects that we keep.
func Ready() map[string]any { return map[string]any{"ready": true} }

// Template makes a machine template, whose spec.template.spec is the given one. The caller names it.
func Template(gvk schema.GroupVersionKind, spec any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the spec of a %s: %w", gvk.Kind, err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": content}}}}
	o.SetGroupVersionKind(gvk)
	return o, nil
}

// Endpoint is where the API of a cluster is; nil while that is not known.
type Endpoint struct {
	Host string `json:"host"`
	Port int32  `json:"port"`
}

// EndpointOf is nil while the endpoint is not known: providers take an empty one for a mistake.
func EndpointOf(e hyperv1.APIEndpoint) *Endpoint {
	if e.Host == "" {
		return nil
	}
	return &Endpoint{Host: e.Host, Port: e.Port}
}
