package metricsproxy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/controlplane/component"
)

// resolve says which pods a monitor is about, and at which port of theirs; port 0 while that is not known.
func resolve(ctx component.WorkloadContext, m monitor) (selector map[string]string, port int32, err error) {
	if m.pods {
		name, _, _ := unstructured.NestedString(m.endpoint, "port")
		port, err = containerPort(ctx, m.selector, name)
		return m.selector, port, err
	}
	svc, err := serviceOf(ctx, m)
	if svc == nil || err != nil {
		return nil, 0, err
	}
	wanted := servicePort(m.endpoint, svc)
	if wanted.Type == intstr.Int {
		return svc.Spec.Selector, wanted.IntVal, nil
	}
	port, err = containerPort(ctx, svc.Spec.Selector, wanted.StrVal)
	return svc.Spec.Selector, port, err
}

// serviceOf is the Service of the same name, or else the first by the monitor's selector.
func serviceOf(ctx component.WorkloadContext, m monitor) (*corev1.Service, error) {
	svc := &corev1.Service{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: m.name}, svc)
	if err == nil {
		return svc, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading Service %s: %w", m.name, err)
	}
	if len(m.selector) == 0 {
		return nil, nil
	}
	list := &corev1.ServiceList{}
	if err := ctx.Reader.List(ctx.Context, list, client.InNamespace(ctx.HCP.Namespace), client.MatchingLabels(m.selector)); err != nil {
		return nil, fmt.Errorf("listing Services for monitor %s: %w", m.name, err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return &list.Items[0], nil
}

// servicePort is the port of pods that an endpoint names by the Service's port or by the pods' own.
func servicePort(endpoint map[string]any, svc *corev1.Service) intstr.IntOrString {
	if name, ok, _ := unstructured.NestedString(endpoint, "port"); ok && name != "" {
		for _, p := range svc.Spec.Ports {
			if p.Name != name {
				continue
			}
			if p.TargetPort == (intstr.IntOrString{}) {
				return intstr.FromInt32(p.Port)
			}
			return p.TargetPort
		}
		return intstr.IntOrString{}
	}
	if n, ok, _ := unstructured.NestedInt64(endpoint, "targetPort"); ok {
		return intstr.FromInt32(int32(min(max(n, 0), 65535))) // it is bounded
	}
	name, _, _ := unstructured.NestedString(endpoint, "targetPort")
	return intstr.FromString(name)
}

// containerPort finds a port by its name on the pods; 0 when no pod has it.
func containerPort(ctx component.WorkloadContext, selector map[string]string, name string) (int32, error) {
	if name == "" || len(selector) == 0 {
		return 0, nil
	}
	list := &corev1.PodList{}
	if err := ctx.Reader.List(ctx.Context, list, client.InNamespace(ctx.HCP.Namespace), client.MatchingLabels(selector)); err != nil {
		return 0, fmt.Errorf("listing pods for their port %s: %w", name, err)
	}
	for i := range list.Items {
		for _, c := range list.Items[i].Spec.Containers {
			for _, p := range c.Ports {
				if p.Name == name {
					return p.ContainerPort, nil
				}
			}
		}
	}
	return 0, nil
}
