package hostedcontrolplane

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

const (
	// Finalizer on a HostedControlPlane.
	Finalizer = hyperv1.HostedControlPlaneFinalizer

	defaultServiceAccount = "default"
)

func ownerReference(hcp *hyperv1.HostedControlPlane) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedControlPlane", Name: hcp.Name, UID: hcp.UID,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
}
