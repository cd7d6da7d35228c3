package hostedcluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/capiprovider"
	"hcp.internal/platform/internal/controlplane/clusterapi"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	payloadprovider "hcp.internal/platform/internal/controlplane/openshift/capiprovider"
	payloadclusterapi "hcp.internal/platform/internal/controlplane/openshift/clusterapi"
	"hcp.internal/platform/internal/controlplane/openshift/controlplaneoperator"
	"hcp.internal/platform/internal/controlplane/openshift/karpenteroperator"
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/hostedcluster/desired"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
)

// PreviewControlPlane is the HostedControlPlane that the operator makes of a HostedCluster and its NodePools. An empty spec.infraID becomes the
// name of the cluster; the operator itself would choose one by chance.
func PreviewControlPlane(hc *hyperv1.HostedCluster, pools []hyperv1.NodePool) *hyperv1.HostedControlPlane {
	hc = hc.DeepCopy()
	if hc.Spec.InfraID == "" {
		hc.Spec.InfraID = hc.Name
	}
	hcp := desired.HostedControlPlane(&state.Observed{HC: hc, Pools: pools})
	hcp.TypeMeta = metav1.TypeMeta{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedControlPlane"}
	return hcp
}

// PreviewComponents are the components that this operator keeps for a control plane: its operator, and Cluster API with the provider of the
// platform where it has one. r is the release of the control plane.
func PreviewComponents(hcp *hyperv1.HostedControlPlane, r *release.Release) ([]component.Component, error) {
	if !r.Kubernetes {
		return payloadComponents(hcp), nil
	}
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

// payloadComponents are PreviewComponents of an OpenShift payload.
func payloadComponents(hcp *hyperv1.HostedControlPlane) []component.Component {
	o := operatorOptions()
	list := []component.Component{
		controlplaneoperator.NewComponent(controlplaneoperator.Options{
			CertRotationScale: o.CertRotationScale, FeatureSet: o.FeatureSet, DefaultIngressDomain: o.DefaultIngressDomain,
		}),
		payloadclusterapi.NewComponent(),
	}
	if payloadprovider.Offered(hcp) {
		list = append(list, payloadprovider.NewComponent(hcp.Spec.Platform.Type))
	}
	return append(list, karpenteroperator.NewComponent())
}
