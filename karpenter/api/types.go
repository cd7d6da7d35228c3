// Package api has the node class by which Karpenter makes machines of a hosted cluster on platforms whose machines are objects of Cluster API.
package api

import (
	_ "embed"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the node class.
var GroupVersion = schema.GroupVersion{Group: "karpenter.hypershift.openshift.io", Version: "v1"}

// Kind of the node class.
const Kind = "HyperShiftNodeClass"

// Definition is the CustomResourceDefinition.
//
//go:embed karpenter.hypershift.openshift.io_hypershiftnodeclasses.yaml
var Definition []byte

// HyperShiftNodeClass says what machines Karpenter makes in a hosted cluster. It is an object of the hosted cluster.
type HyperShiftNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   HyperShiftNodeClassSpec   `json:"spec"`
	Status HyperShiftNodeClassStatus `json:"status,omitempty"`
}

// HyperShiftNodeClassSpec is what is wanted of machines.
type HyperShiftNodeClassSpec struct {
	// NodePool names the NodePool, beside the HostedCluster, whose release, configuration and platform machines have. It may have no machines of its own.
	NodePool string `json:"nodePool"`
	// InstanceTypes are the sizes that machines may have.
	InstanceTypes []InstanceType `json:"instanceTypes"`
}

// InstanceType is a size of machines.
type InstanceType struct {
	Name string `json:"name"`
	// CPU and Memory are what a machine has.
	CPU    resource.Quantity `json:"cpu"`
	Memory resource.Quantity `json:"memory"`
	// Price of an hour, by which types are compared. Unset means that a processor costs 1 and a GiB of memory 0.25.
	Price *resource.Quantity `json:"price,omitempty"`
}

// HyperShiftNodeClassStatus says how it is.
type HyperShiftNodeClassStatus struct {
	// Template tells what machines are made from at present. It changes with it, so that Karpenter looks for drift.
	Template string `json:"template,omitempty"`
	// Conditions: Ready.
	Conditions []status.Condition `json:"conditions,omitempty"`
}

// StatusConditions are the conditions as Karpenter reads them.
func (c *HyperShiftNodeClass) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions().For(c, opts...)
}

// GetConditions gives the conditions.
func (c *HyperShiftNodeClass) GetConditions() []status.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions.
func (c *HyperShiftNodeClass) SetConditions(list []status.Condition) { c.Status.Conditions = list }

// DeepCopyObject copies.
func (c *HyperShiftNodeClass) DeepCopyObject() runtime.Object {
	out := &HyperShiftNodeClass{TypeMeta: c.TypeMeta, ObjectMeta: *c.ObjectMeta.DeepCopy(), Spec: HyperShiftNodeClassSpec{NodePool: c.Spec.NodePool}}
	for _, t := range c.Spec.InstanceTypes {
		copied := InstanceType{Name: t.Name, CPU: t.CPU.DeepCopy(), Memory: t.Memory.DeepCopy()}
		if t.Price != nil {
			price := t.Price.DeepCopy()
			copied.Price = &price
		}
		out.Spec.InstanceTypes = append(out.Spec.InstanceTypes, copied)
	}
	out.Status.Template = c.Status.Template
	out.Status.Conditions = append(out.Status.Conditions, c.Status.Conditions...)
	return out
}

// HyperShiftNodeClassList is a list of them.
type HyperShiftNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HyperShiftNodeClass `json:"items"`
}

// DeepCopyObject copies.
func (l *HyperShiftNodeClassList) DeepCopyObject() runtime.Object {
	out := &HyperShiftNodeClassList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*HyperShiftNodeClass))
	}
	return out
}

// AddToScheme makes the kinds known.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &HyperShiftNodeClass{}, &HyperShiftNodeClassList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
