package gcp

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/cluster"
)

// links says what became of endpoints of Private Service Connect. Nothing here calls Google, so somebody else makes them, or nobody.
var links = cloud.Private{
	Kind:  "GCPPrivateServiceConnect",
	Types: []string{hyperv1.GCPServiceAttachmentAvailable, hyperv1.GCPEndpointAvailable},
	Good:  hyperv1.GCPSuccessReason, Bad: hyperv1.GCPErrorReason,
	Remedy: "This operator makes no endpoints of Private Service Connect, by which machines reach the control plane: they join once somebody else makes the service " +
		"attachment, the endpoint and its names",
}

// Observe implements platform.Observer. Each hosted cluster is private here, or public and private.
func (Platform) Observe(ctx context.Context, reader client.Reader, _ *hyperv1.HostedCluster, hcpNamespace string) (objects []client.Object, _ error) {
	list := &hyperv1.GCPPrivateServiceConnectList{}
	if err := cloud.ListLinks(ctx, reader, list, hcpNamespace, links.Kind); err != nil {
		return nil, err
	}
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	return objects, nil
}

// linksOf sums up what is said of a cluster's endpoints.
func linksOf(in cluster.Input) []metav1.Condition {
	var found []cloud.Link
	for _, obj := range in.Objects {
		if s, ok := obj.(*hyperv1.GCPPrivateServiceConnect); ok {
			found = append(found, cloud.Link{Name: s.Name, Conditions: s.Status.Conditions})
		}
	}
	return links.Conditions(found)
}
