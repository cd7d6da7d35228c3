package component

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/contract/capiproxy"
)

// PrivateCAPI says whether the objects of Cluster API of a control plane are stored in HyperShift's own groups.
func PrivateCAPI(hcp *hyperv1.HostedControlPlane) bool {
	return hcp.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true"
}

// CAPIClient asks for the proxy beside a component that speaks to the management cluster about objects of Cluster API. It is only there for
// control planes whose objects are stored privately.
type CAPIClient struct {
	// KubeconfigFlag is the flag of the first container that names a kubeconfig of the management cluster; empty: the program looks at
	// KUBECONFIG.
	KubeconfigFlag string
}

// inject puts the proxy before everything else, and points the first container at it.
func (p *CAPIClient) inject(ctx WorkloadContext, pod *corev1.PodSpec) {
	if !PrivateCAPI(ctx.HCP) {
		return
	}
	capiproxy.Add(pod, capiproxy.Container(cmp.Or(ctx.CAPIProxyImage, ImageControlPlaneOperator)), ctx.Management.NativeSidecars)
	if main := &pod.Containers[0]; p.KubeconfigFlag != "" {
		main.Args = append(main.Args, "--"+p.KubeconfigFlag+"="+capiproxy.Kubeconfig)
	}
}

// storedGroups lets the rules of a Role name the groups in which objects are stored. Whoever writes through a proxy leaves that to it.
func storedGroups(ctx WorkloadContext, obj client.Object) {
	role, ok := obj.(*rbacv1.Role)
	if !ok || !ctx.StoredCAPIGroups || !PrivateCAPI(ctx.HCP) {
		return
	}
	for i := range role.Rules {
		for j, group := range role.Rules[i].APIGroups {
			role.Rules[i].APIGroups[j] = translate.Group(group)
		}
	}
}
