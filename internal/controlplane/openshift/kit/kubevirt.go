package kit

import (
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// InfraKubeconfig is the Secret with the kubeconfig of the cluster that runs the virtual machines, where that isn't the management cluster.
const InfraKubeconfig = "kubevirt-infra-credentials"

// ExternalInfra says whether the virtual machines run in another cluster than the control plane.
func ExternalInfra(hcp *hyperv1.HostedControlPlane) bool {
	k := hcp.Spec.Platform.Kubevirt
	return k != nil && k.Credentials != nil && k.Credentials.InfraKubeConfigSecret != nil
}

// InfraNamespace is where the virtual machines are.
func InfraNamespace(hcp *hyperv1.HostedControlPlane) string {
	if ExternalInfra(hcp) && hcp.Spec.Platform.Kubevirt.Credentials.InfraNamespace != "" {
		return hcp.Spec.Platform.Kubevirt.Credentials.InfraNamespace
	}
	return hcp.Namespace
}
