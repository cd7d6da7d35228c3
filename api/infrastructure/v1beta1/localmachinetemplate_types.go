package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LocalMachineTemplate is what new LocalMachines are copied from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localmachinetemplates,shortName=lmt,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Image",type="string",JSONPath=".spec.template.spec.image",priority=1
// +kubebuilder:printcolumn:name="CPU",type="string",JSONPath=".spec.template.spec.cpu"
// +kubebuilder:printcolumn:name="Memory",type="string",JSONPath=".spec.template.spec.memory"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type LocalMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what machines made from it are like.
	//
	// +required
	Spec LocalMachineTemplateSpec `json:"spec"`

	// status tells autoscalers what a machine made from it offers.
	//
	// +optional
	Status LocalMachineTemplateStatus `json:"status,omitzero"`
}

// LocalMachineTemplateList is a list of LocalMachineTemplates.
//
// +kubebuilder:object:root=true
type LocalMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocalMachineTemplate `json:"items"`
}

// LocalMachineTemplateSpec says what machines are like.
type LocalMachineTemplateSpec struct {
	// template is what is copied.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="template can't be changed: make another LocalMachineTemplate"
	Template LocalMachineTemplateResource `json:"template"`
}

// LocalMachineTemplateResource is what is copied.
type LocalMachineTemplateResource struct {
	// metadata holds labels and annotations that LocalMachines get.
	//
	// +optional
	ObjectMeta TemplateMeta `json:"metadata,omitzero"`

	// spec of the LocalMachines.
	//
	// +required
	Spec LocalMachineSpec `json:"spec"`
}

// TemplateMeta holds labels and annotations.
type TemplateMeta struct {
	// labels that LocalMachines get.
	//
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations that LocalMachines get.
	//
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// LocalMachineTemplateStatus tells autoscalers what a machine offers.
type LocalMachineTemplateStatus struct {
	// capacity is what a node offers: cpu, memory and pods. With it a pool can grow from no machine at all.
	//
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// nodeInfo says what a node's system is.
	//
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitzero"`
}

// NodeInfo says what a node's system is.
type NodeInfo struct {
	// architecture of the node.
	//
	// +optional
	// +kubebuilder:validation:Enum=amd64;arm64;s390x;ppc64le
	Architecture string `json:"architecture,omitempty"`

	// operatingSystem of the node, in lower case.
	//
	// +optional
	// +kubebuilder:validation:Enum=linux
	OperatingSystem string `json:"operatingSystem,omitempty"`
}
