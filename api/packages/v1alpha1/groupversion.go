package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "package-operator.run", Version: "v1alpha1"}

// AddToScheme registers every kind of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Package{}, &PackageList{}, &ClusterPackage{}, &ClusterPackageList{},
		&ObjectDeployment{}, &ObjectDeploymentList{}, &ClusterObjectDeployment{}, &ClusterObjectDeploymentList{},
		&ObjectSet{}, &ObjectSetList{}, &ClusterObjectSet{}, &ClusterObjectSetList{},
		&ObjectSetPhase{}, &ObjectSetPhaseList{}, &ClusterObjectSetPhase{}, &ClusterObjectSetPhaseList{},
		&ObjectSlice{}, &ObjectSliceList{}, &ClusterObjectSlice{}, &ClusterObjectSliceList{},
		&ObjectTemplate{}, &ObjectTemplateList{}, &ClusterObjectTemplate{}, &ClusterObjectTemplateList{},
		&HostedClusterPackage{}, &HostedClusterPackageList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
