package virtualmachines

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	provided    = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha1"}
	clusterKind = provided.WithKind("KubevirtCluster")
	machineKind = provided.WithKind("KubevirtMachine")
	// VMKind, VMIKind and DataVolumeKind are KubeVirt's and its importer's.
	VMKind         = schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"}
	VMIKind        = schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"}
	DataVolumeKind = schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"}
)

type kubevirtCluster struct {
	Spec struct {
		InfraSecret *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"infraClusterSecretRef"`
	} `json:"spec"`
}

type kubevirtMachine struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ProviderID string     `json:"providerID,omitempty"`
		Template   vmTemplate `json:"virtualMachineTemplate"`
	} `json:"spec"`
	Status machineStatus `json:"status"`
}

// vmTemplate is what a VirtualMachine is copied from. Its spec is copied as it is.
type vmTemplate struct {
	Metadata objectMeta     `json:"metadata"`
	Spec     map[string]any `json:"spec"`
}

type objectMeta struct {
	Name        string            `json:"name,omitempty"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type machineStatus struct {
	Ready      bool               `json:"ready,omitempty"`
	Addresses  []address          `json:"addresses,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type address struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

// virtualMachine are the fields of a VirtualMachine that decide what runs.
type virtualMachine struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		RunStrategy string       `json:"runStrategy"`
		DataVolumes []vmTemplate `json:"dataVolumeTemplates"`
		Template    struct {
			Metadata objectMeta     `json:"metadata"`
			Spec     map[string]any `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status vmStatus `json:"status"`
}

type vmStatus struct {
	Created         bool   `json:"created,omitempty"`
	Ready           bool   `json:"ready,omitempty"`
	PrintableStatus string `json:"printableStatus,omitempty"`
}

// instance is a VirtualMachineInstance: a VirtualMachine that runs.
type instance struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              instanceSpec   `json:"spec"`
	Status            instanceStatus `json:"status"`
}

type instanceSpec struct {
	Volumes []struct {
		Name       string `json:"name"`
		DataVolume *struct {
			Name string `json:"name"`
		} `json:"dataVolume"`
		CloudInit *struct {
			Secret struct {
				Name string `json:"name"`
			} `json:"secretRef"`
		} `json:"cloudInitConfigDrive"`
	} `json:"volumes"`
}

type instanceStatus struct {
	Phase      string             `json:"phase,omitempty"`
	Interfaces []networkInterface `json:"interfaces,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type networkInterface struct {
	Name string `json:"name"`
	IP   string `json:"ipAddress,omitempty"`
}

// running is the phase of instances that run.
const running = "Running"

// providerID names a virtual machine for its node and for Cluster API.
func providerID(vm string) string { return "kubevirt://" + vm }
