package hostedcluster

import (
	"hcp.internal/platform/internal/hostedcluster/capi"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/capiprovider"
	"hcp.internal/platform/internal/controlplane/clusterapi"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	"hcp.internal/platform/internal/platform"
)

// PreviewControlPlane is the HostedControlPlane that the operator makes of a HostedCluster and its NodePools. An empty spec.infraID becomes the
// name of the cluster; the operator itself would choose one by chance.
func PreviewControlPlane(hc *hyperv1.HostedCluster, pools []hyperv1.NodePool) *hyperv1.HostedControlPlane {
	hc = hc.DeepCopy()
	if hc.Spec.InfraID == "" {
		hc.Spec.InfraID = hc.Name
	}
	hcp := hostedControlPlane(&observed{hc: hc, pools: pools})
	hcp.TypeMeta = metav1.TypeMeta{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedControlPlane"}
	return hcp
}

// PreviewComponents are the components that this operator keeps for a control plane: its operator, and Cluster API with the provider of the
// platform where it has one.
func PreviewComponents(hcp *hyperv1.HostedControlPlane) ([]component.Component, error) {
	provider := capiprovider.Options{}
	p, err := platform.For(hcp.Spec.Platform.Type)
	if err == nil {
		hc := &hyperv1.HostedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: hcp.Name, Namespace: hcp.Namespace, Annotations: hcp.Annotations},
			Spec:       hyperv1.HostedClusterSpec{Platform: hcp.Spec.Platform, InfraID: hcp.Spec.InfraID},
		}
		infra, err := capi.Infrastructure(p, hc, nil)
		if err != nil {
			return nil, err
		}
		if infra != nil {
			if provider.Spec, err = p.CAPIProvider(hc, hcp); err != nil {
				return nil, err
			}
			provider.Rules = p.CAPIProviderPolicyRules()
		}
	}
	list := []component.Component{
		cpo.NewComponent(operatorOptions()),
		clusterapi.NewComponent(clusterapi.Options{Enabled: provider.Spec != nil, Image: hcp.Annotations[hyperv1.ClusterAPIManagerImage]}),
	}
	if provider.Spec != nil { // the platform says what its pod consists of
		list = append(list, capiprovider.NewComponent(provider))
	}
	return list, nil
}
