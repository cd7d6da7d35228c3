package v1

// ResourceReservation reserves resources, by cpu, memory, ephemeral-storage and pid.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=20
// +kubebuilder:validation:XValidation:rule="self.all(x, x == 'cpu' || x == 'memory' || x == 'ephemeral-storage' || x == 'pid')",message="only cpu, memory, ephemeral-storage and pid can be reserved"
// +kubebuilder:validation:XValidation:rule="self.all(x, !self[x].startsWith('-'))",message="a reservation cannot be negative"
// +kubebuilder:validation:XValidation:rule="self.all(x, self[x].size() > 0)",message="a reservation cannot be empty"
type ResourceReservation map[string]string

// EvictionThreshold is a quantity or a percentage.
//
// +kubebuilder:validation:MaxLength=64
type EvictionThreshold string

// EvictionThresholds are thresholds below which pods are evicted, by signal.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=20
// +kubebuilder:validation:XValidation:rule="self.all(x, x in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",message="only memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available have thresholds"
// +kubebuilder:validation:XValidation:rule="self.all(x, self[x].size() > 0)",message="a threshold cannot be empty"
type EvictionThresholds map[string]EvictionThreshold

// EvictionGracePeriods are times, as Go durations, for which a soft threshold may be passed, by signal.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=20
// +kubebuilder:validation:XValidation:rule="self.all(x, x in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",message="only memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available have grace periods"
type EvictionGracePeriods map[string]string

// KubeletConfiguration configures the kubelet. Settings that newer versions add are kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent",message="imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent"
// +kubebuilder:validation:XValidation:rule="!has(self.podsPerCore) || !has(self.maxPods) || self.podsPerCore <= self.maxPods",message="podsPerCore cannot be greater than maxPods"
// +kubebuilder:validation:XValidation:rule="!has(self.evictionSoft) || (has(self.evictionSoftGracePeriod) && self.evictionSoft.all(e, e in self.evictionSoftGracePeriod))",message="each of evictionSoft needs an entry in evictionSoftGracePeriod"
// +kubebuilder:validation:XValidation:rule="!has(self.evictionSoftGracePeriod) || (has(self.evictionSoft) && self.evictionSoftGracePeriod.all(e, e in self.evictionSoft))",message="each of evictionSoftGracePeriod needs an entry in evictionSoft"
// +kubebuilder:validation:XValidation:rule="!has(self.evictionHard) || !has(self.evictionSoft) || self.evictionHard.all(key, !(key in self.evictionSoft) || ((self.evictionSoft[key].endsWith('%') && self.evictionHard[key].endsWith('%')) ? (self.evictionSoft[key].size() <= 1 || self.evictionHard[key].size() <= 1 || double(self.evictionSoft[key].substring(0, self.evictionSoft[key].size() - 1)) >= double(self.evictionHard[key].substring(0, self.evictionHard[key].size() - 1))) : (!(isQuantity(self.evictionSoft[key]) && isQuantity(self.evictionHard[key])) || quantity(self.evictionSoft[key]).compareTo(quantity(self.evictionHard[key])) >= 0)))",message="a soft threshold cannot be below the hard one of the same signal"
type KubeletConfiguration struct {
	// maxPods is how many pods a node may have.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2500
	MaxPods int32 `json:"maxPods,omitempty"`

	// podsPerCore is how many pods a node may have per processor; maxPods still holds.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2500
	PodsPerCore int32 `json:"podsPerCore,omitempty"`

	// systemReserved is what the operating system keeps.
	//
	// +optional
	SystemReserved ResourceReservation `json:"systemReserved,omitempty"`

	// kubeReserved is what Kubernetes keeps.
	//
	// +optional
	KubeReserved ResourceReservation `json:"kubeReserved,omitempty"`

	// evictionHard are thresholds below which pods are evicted at once.
	//
	// +optional
	EvictionHard EvictionThresholds `json:"evictionHard,omitempty"`

	// evictionSoft are thresholds below which pods are evicted after a while.
	//
	// +optional
	EvictionSoft EvictionThresholds `json:"evictionSoft,omitempty"`

	// evictionSoftGracePeriod says after which while.
	//
	// +optional
	EvictionSoftGracePeriod EvictionGracePeriods `json:"evictionSoftGracePeriod,omitempty"`

	// evictionMaxPodGracePeriod is how many seconds pods get to end when they are evicted after a while.
	//
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`

	// imageGCHighThresholdPercent is how full the disk may be before images are removed.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`

	// imageGCLowThresholdPercent is how full the disk may stay when images are removed.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`

	// cpuCFSQuota says whether CPU limits of containers are enforced.
	//
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`
}
