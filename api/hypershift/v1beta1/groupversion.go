package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "hypershift.openshift.io", Version: "v1beta1"}

// AddToScheme registers every kind of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&HostedCluster{}, &HostedClusterList{},
		&HostedControlPlane{}, &HostedControlPlaneList{},
		&NodePool{}, &NodePoolList{},
		&ControlPlaneComponent{}, &ControlPlaneComponentList{},
		&AWSEndpointService{}, &AWSEndpointServiceList{},
		&AzurePrivateLinkService{}, &AzurePrivateLinkServiceList{},
		&GCPPrivateServiceConnect{}, &GCPPrivateServiceConnectList{},
		&HCPEtcdBackup{}, &HCPEtcdBackupList{},
		&CertificateSigningRequestApproval{}, &CertificateSigningRequestApprovalList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Resource qualifies a resource name with the group of this package.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}
