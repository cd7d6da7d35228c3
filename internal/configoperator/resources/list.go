package resources

import (
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Input is everything that objects may depend on. Adding a source means adding a field.
type Input struct {
	HCP *hyperv1.HostedControlPlane
	// Images of the hosted cluster's release, by tag. What has no image here does not exist in the release, and is left out.
	Images map[string]string
	// Tunnel from the control plane to the nodes; without a host there is none.
	Tunnel Tunnel
	// Nodes are how many the hosted cluster has. Only 0, 1 and more are told apart: counting may stop at 2.
	Nodes int
}

// Resource is a group of objects with one purpose.
type Resource struct {
	// Name is the word for the group in messages.
	Name string
	// Render returns the objects in the order in which they must be applied. An error says what the input lacks; the other
	// resources are applied all the same.
	Render func(Input) ([]client.Object, error)
}

// all is in the order of application: first what the other objects or their users need.
var all = []Resource{
	{Name: "API server endpoints", Render: APIServerEndpoints},
	{Name: "kubelet access", Render: kubeletAccess},
	{Name: "access to metrics", Render: metricsAccess},
	{Name: "node certificates", Render: nodeCertificates},
	{Name: "system namespace", Render: systemNamespace},
	{Name: "node proxy", Render: nodeProxy},
	{Name: "way to the API server", Render: apiServerProxy},
	{Name: "pod network", Render: podNetwork},
	{Name: "tunnel agents", Render: TunnelAgents},
	{Name: "cluster DNS", Render: clusterDNS},
	{Name: "default storage class", Render: localStorage},
}

// Render returns the objects of every resource, marked as managed by us, and the joined errors of those that can't be rendered.
func Render(in Input) ([]client.Object, error) {
	var objects []client.Object
	var errs []error
	for _, r := range all {
		rendered, err := r.Render(in)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.Name, err))
			continue
		}
		objects = append(objects, rendered...)
	}
	for _, o := range objects {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[hyperv1.ManagedLabel] = "true"
		o.SetLabels(labels)
	}
	return objects, errors.Join(errs...)
}
