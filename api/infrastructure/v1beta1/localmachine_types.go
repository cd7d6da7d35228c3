package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineFinalizer keeps a LocalMachine until its pod is gone.
const MachineFinalizer = "localmachine.infrastructure.cluster.x-k8s.io"

// MachineLabel is on the pod of a LocalMachine; its value is the LocalMachine's name where that fits, else the start of it and a hash.
const MachineLabel = "infrastructure.cluster.x-k8s.io/local-machine"

// MachinePriorityClass is the PriorityClass of pods of LocalMachines, which the installation makes. It is below those of control planes, so
// that a node which runs out of memory ends a worker before a control plane, and above that of ordinary pods. Such pods preempt nothing.
const MachinePriorityClass = "hypershift-local-machine"

// Conditions of a LocalMachine, set by capi-provider alone.
const (
	// MachineReady sums the others up: the machine runs and has an address.
	MachineReady = "Ready"
	// MachinePodRunning tells whether the machine's pod runs.
	MachinePodRunning = "PodRunning"
	// MachineBootstrapDataReady tells whether there is user data to boot from.
	MachineBootstrapDataReady = "BootstrapDataReady"
)

// Reasons of the conditions of LocalClusters and LocalMachines.
const (
	// ReasonReady is the reason of conditions that are True.
	ReasonReady = "Ready"
	// ReasonWaitingForEndpoint: the hosted cluster has no address yet; nothing needs to be done.
	ReasonWaitingForEndpoint = "WaitingForControlPlaneEndpoint"
	// ReasonWaitingForCluster: the Cluster's infrastructure is not provisioned yet; see the LocalCluster.
	ReasonWaitingForCluster = "WaitingForClusterInfrastructure"
	// ReasonWaitingForMachine: no Machine owns this LocalMachine; Cluster API's manager sets the owner within seconds.
	ReasonWaitingForMachine = "WaitingForMachine"
	// ReasonWaitingForBootstrapData: the Machine names no Secret with user data, or there is none of that name yet.
	ReasonWaitingForBootstrapData = "WaitingForBootstrapData"
	// ReasonInvalidBootstrapData: the Secret with user data has no key "value", or it is too large.
	ReasonInvalidBootstrapData = "InvalidBootstrapData"
	// ReasonInvalidSpec: the pod was refused; the message has the API server's words. Fix the LocalMachineTemplate.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonPodPending: the pod is not running yet; the message says why.
	ReasonPodPending = "PodPending"
	// ReasonRebooting: the machine has crashed or powered off and is starting again.
	ReasonRebooting = "Rebooting"
	// ReasonPoweredOff: the machine was switched off from inside and stays off, as a virtual machine would. Delete the Machine to
	// have another one.
	ReasonPoweredOff = "PoweredOff"
	// ReasonMachineFailed: the management cluster has ended the machine's pod, e.g. because its disk grew beyond rootVolumeSize. It is
	// not made again.
	ReasonMachineFailed = "MachineFailed"
	// ReasonMachineGone: the pod of a machine that had been made no longer exists. It is not made again: delete the Machine, or let
	// a MachineHealthCheck replace it.
	ReasonMachineGone = "MachineGone"
	// ReasonPaused: the object or its Cluster is paused.
	ReasonPaused = "Paused"
	// ReasonDeleting: the object is being deleted; the message says what it waits for.
	ReasonDeleting = "Deleting"
)

// LocalMachine is a worker: a privileged pod of the same name in the management cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localmachines,shortName=lm,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Machine",type="string",JSONPath=".metadata.ownerReferences[?(@.kind=='Machine')].name",description="Machine that owns it"
// +kubebuilder:printcolumn:name="Address",type="string",JSONPath=".status.addresses[?(@.type=='InternalIP')].address",description="Address of the worker"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the machine runs"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="Why, or why not"
// +kubebuilder:printcolumn:name="Reboots",type="integer",JSONPath=".status.reboots",description="How often the machine has crashed or powered off and started again"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type LocalMachine struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what the machine is like.
	//
	// +required
	Spec LocalMachineSpec `json:"spec"`

	// status says how it is.
	//
	// +optional
	Status LocalMachineStatus `json:"status,omitzero"`
}

// LocalMachineList is a list of LocalMachines.
//
// +kubebuilder:object:root=true
type LocalMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocalMachine `json:"items"`
}

// LocalMachineSpec says what a machine is like.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.providerID) && self.providerID == oldSelf.providerID)",message="providerID can't be changed once it is set"
type LocalMachineSpec struct {
	// providerID is local://{namespace}/{name}. The provider sets it once the machine exists.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// image is the reference of the node image, by digest where it matters that all machines are the same.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`

	// cpu is how much processor time the machine may use at a time, e.g. "2" or "500m". The node reports the next whole number of
	// processors. Unset means no bound; the node then reports the processors of the management cluster's node.
	//
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// memory is how much memory the machine may use, e.g. "2Gi", and what its node reports. What exceeds it crashes the process that
	// asked. Unset means no bound.
	//
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// rootVolumeSize is how much the machine may write, images and volumes of its pods included. Unset means no bound. A machine
	// that exceeds it loses its disk: the management cluster evicts it.
	//
	// +optional
	RootVolumeSize *resource.Quantity `json:"rootVolumeSize,omitempty"`
}

// LocalMachineStatus says how a machine is.
type LocalMachineStatus struct {
	// conditions of the machine: Ready, PodRunning, BootstrapDataReady.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization holds what Cluster API waits for.
	//
	// +optional
	Initialization InitializationStatus `json:"initialization,omitzero"`

	// addresses of the machine: its name as Hostname and InternalDNS, its pod's addresses as InternalIP.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Addresses []MachineAddress `json:"addresses,omitempty"`

	// podUID is the UID of the pod that the machine is. A pod of the same name with another UID is not this machine.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	PodUID string `json:"podUID,omitempty"`

	// reboots is how often the machine has crashed or powered off and started again.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Reboots int32 `json:"reboots,omitempty"`
}

// MachineAddress is one address of a machine.
type MachineAddress struct {
	// type of the address.
	//
	// +required
	// +kubebuilder:validation:Enum=Hostname;ExternalIP;InternalIP;ExternalDNS;InternalDNS
	Type string `json:"type"`

	// address itself.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Address string `json:"address"`
}
