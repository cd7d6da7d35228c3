package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpenshiftEC2NodeClassStatus is what the operator found.
//
// +kubebuilder:validation:MinProperties=1
type OpenshiftEC2NodeClassStatus struct {
	// subnets lists the subnets that were selected.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Subnets []Subnet `json:"subnets,omitempty"`

	// securityGroups lists the security groups that were selected.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`

	// capacityReservations lists the reserved capacity that was selected.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	CapacityReservations []CapacityReservation `json:"capacityReservations,omitempty"`

	// releaseImage is the pull specification of the release that instances run.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ReleaseImage string `json:"releaseImage,omitempty"`

	// version is its version.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// conditions are the findings, one per type; Ready is the summary.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Subnet is a subnet that was selected.
type Subnet struct {
	// id is the ID of the subnet.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ID string `json:"id"`

	// zone is the name of its availability zone.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Zone string `json:"zone"`

	// zoneID is the ID of its availability zone.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ZoneID string `json:"zoneID,omitempty"`
}

// SecurityGroup is a security group that was selected.
type SecurityGroup struct {
	// id is the ID of the group.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ID string `json:"id"`

	// name is the name of the group.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
}

// CapacityReservation is reserved capacity that was selected.
type CapacityReservation struct {
	// id is the ID of the reservation.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ID string `json:"id"`

	// availabilityZone is where it is.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	AvailabilityZone string `json:"availabilityZone"`

	// instanceType is what it is for.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	InstanceType string `json:"instanceType"`

	// instanceMatchCriteria says whether any instance that fits uses it, or only those that name it.
	//
	// +required
	// +kubebuilder:validation:Enum=Open;Targeted
	InstanceMatchCriteria string `json:"instanceMatchCriteria"`

	// ownerID is the account that owns it.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=12
	OwnerID string `json:"ownerID"`

	// reservationType is the kind of reservation.
	//
	// +optional
	// +kubebuilder:validation:Enum=Default;CapacityBlock
	ReservationType string `json:"reservationType,omitempty"`

	// state says whether it is about to end.
	//
	// +optional
	// +kubebuilder:validation:Enum=Active;Expiring
	State string `json:"state,omitempty"`

	// endTime is when it ends. Unset means that somebody must cancel it.
	//
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
}
