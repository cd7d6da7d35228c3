package kubevirt

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// These are the fields of KubeVirt's and CDI's kinds that machines are described with.

type bootstrapCheck struct {
	CheckStrategy string `json:"checkStrategy"`
}

type vmTemplate struct {
	Metadata meta   `json:"metadata"`
	Spec     vmSpec `json:"spec"`
}

type meta struct {
	Name        string            `json:"name,omitempty"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type vmSpec struct {
	RunStrategy         string               `json:"runStrategy"`
	DataVolumeTemplates []dataVolumeTemplate `json:"dataVolumeTemplates"`
	Template            vmiTemplate          `json:"template"`
}

type vmiTemplate struct {
	Metadata meta    `json:"metadata"`
	Spec     vmiSpec `json:"spec"`
}

type vmiSpec struct {
	Domain                    domain                            `json:"domain"`
	EvictionStrategy          string                            `json:"evictionStrategy"`
	NodeSelector              map[string]string                 `json:"nodeSelector,omitempty"`
	Affinity                  *corev1.Affinity                  `json:"affinity,omitempty"`
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	Volumes                   []volume                          `json:"volumes"`
	Networks                  []network                         `json:"networks,omitempty"`
}

type domain struct {
	CPU       *cpu                         `json:"cpu,omitempty"`
	Memory    *memory                      `json:"memory,omitempty"`
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	Devices   devices                      `json:"devices"`
}

type cpu struct {
	Cores int32 `json:"cores"`
}

type memory struct {
	Guest resource.Quantity `json:"guest"`
}

type devices struct {
	Disks                      []disk       `json:"disks"`
	Interfaces                 []nic        `json:"interfaces,omitempty"`
	NetworkInterfaceMultiQueue *bool        `json:"networkInterfaceMultiqueue,omitempty"`
	HostDevices                []hostDevice `json:"hostDevices,omitempty"`
}

type disk struct {
	Name string     `json:"name"`
	Disk diskTarget `json:"disk"`
}

type diskTarget struct {
	Bus string `json:"bus"`
}

type nic struct {
	Name   string   `json:"name"`
	Bridge struct{} `json:"bridge"`
}

type network struct {
	Name   string    `json:"name"`
	Pod    *struct{} `json:"pod,omitempty"`
	Multus *multus   `json:"multus,omitempty"`
}

type multus struct {
	NetworkName string `json:"networkName"`
}

type hostDevice struct {
	Name       string `json:"name"`
	DeviceName string `json:"deviceName"`
}

type volume struct {
	Name       string     `json:"name"`
	DataVolume dataVolume `json:"dataVolume"`
}

type dataVolume struct {
	Name string `json:"name"`
}

type dataVolumeTemplate struct {
	Metadata meta           `json:"metadata"`
	Spec     dataVolumeSpec `json:"spec"`
}

type dataVolumeSpec struct {
	Source        source  `json:"source"`
	Storage       storage `json:"storage"`
	Preallocation *bool   `json:"preallocation,omitempty"`
}

type storage struct {
	AccessModes      []string                           `json:"accessModes,omitempty"`
	VolumeMode       *corev1.PersistentVolumeMode       `json:"volumeMode,omitempty"`
	StorageClassName *string                            `json:"storageClassName,omitempty"`
	Resources        *corev1.VolumeResourceRequirements `json:"resources,omitempty"`
}

// source is where a disk comes from: one of these.
type source struct {
	Registry *registry  `json:"registry,omitempty"`
	HTTP     *download  `json:"http,omitempty"`
	PVC      *reference `json:"pvc,omitempty"`
}

type registry struct {
	URL        string `json:"url"`
	PullMethod string `json:"pullMethod"`
}

type download struct {
	URL string `json:"url"`
}

type reference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}
