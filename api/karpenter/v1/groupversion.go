package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "karpenter.hypershift.openshift.io", Version: "v1"}

// AddToScheme registers every kind of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&OpenshiftEC2NodeClass{}, &OpenshiftEC2NodeClassList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
