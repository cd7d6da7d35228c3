package create

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// leastVolumeGiB is the least that the boot image of a worker fits on.
const leastVolumeGiB = 16

// kubevirtMachines are virtual machines of a KubeVirt cluster.
type kubevirtMachines struct {
	selfContained

	memory, storageClass, accessModes, volumeMode, cache, image string
	cores                                                       int32
	volumeSize                                                  int32 // GiB
	multiqueue, qos                                             string
	networks, devices                                           []string
	defaultNetwork                                              bool
	nodeSelector                                                map[string]string

	parsedNetworks []hyperv1.KubevirtNetwork
	parsedDevices  []hyperv1.KubevirtHostDevice
}

func newKubevirtMachines() *kubevirtMachines { return &kubevirtMachines{} }

func (m *kubevirtMachines) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&m.memory, "memory", "4Gi", "Memory of each worker")
	fs.Int32Var(&m.cores, "cores", 2, "CPUs of each worker")
	fs.StringVar(&m.storageClass, "root-volume-storage-class", "", "StorageClass of workers' boot volumes (default: the KubeVirt cluster's default)")
	fs.Int32Var(&m.volumeSize, "root-volume-size", 32, "Size of workers' boot volumes in GiB")
	fs.StringVar(&m.accessModes, "root-volume-access-modes", "", "Access modes of boot volumes, separated by commas (default: as KubeVirt has it for the storage class)")
	fs.StringVar(&m.volumeMode, "root-volume-volume-mode", "", "Filesystem or Block (default: as KubeVirt has it for the storage class)")
	fs.StringVar(&m.cache, "root-volume-cache-strategy", "", "Where the boot image is kept for the next worker: None or PVC")
	fs.StringVar(&m.multiqueue, "network-multiqueue", "Enable", "One queue for each processor on network interfaces: Enable or Disable")
	fs.StringVar(&m.qos, "qos-class", string(hyperv1.QoSClassBurstable), "Whether workers' resources are reserved: Burstable or Guaranteed")
	fs.StringArrayVar(&m.networks, "additional-network", nil, "Additional network for workers, as name:{namespace}/{name} of a NetworkAttachmentDefinition (repeatable)")
	fs.BoolVar(&m.defaultNetwork, "attach-default-network", true, "Attach workers to the pod network of the KubeVirt cluster; false needs --additional-network")
	fs.StringToStringVar(&m.nodeSelector, "vm-node-selector", nil, "Labels of the KubeVirt cluster's nodes that run workers, as key=value,…")
	fs.StringArrayVar(&m.devices, "host-device-name", nil, "Host device for each worker, as name[,count:n] (repeatable)")
	fs.StringVar(&m.image, "containerdisk", "", "Container image with a boot disk (default: that of the release)")
}

func (m *kubevirtMachines) load(fs *pflag.FlagSet, _ *NodePoolOptions) error {
	var errs []error
	if size, err := resource.ParseQuantity(m.memory); err != nil || size.Sign() <= 0 {
		errs = append(errs, fmt.Errorf("--memory %q: must be a size such as 4Gi", m.memory))
	}
	if m.cores < 1 {
		errs = append(errs, fmt.Errorf("--cores %d: must be at least 1", m.cores))
	}
	if m.volumeSize < leastVolumeGiB {
		errs = append(errs, fmt.Errorf("--root-volume-size %d: must be at least %d GiB", m.volumeSize, leastVolumeGiB))
	}
	if !m.defaultNetwork && len(m.networks) == 0 {
		errs = append(errs, errors.New("--attach-default-network=false needs --additional-network: a worker without a network can't join"))
	}
	for _, text := range m.networks {
		name, ok := strings.CutPrefix(text, "name:")
		namespace, object, both := strings.Cut(name, "/")
		if !ok || !both || namespace == "" || object == "" {
			errs = append(errs, fmt.Errorf("--additional-network %q: must be name:{namespace}/{name}", text))
		}
		m.parsedNetworks = append(m.parsedNetworks, hyperv1.KubevirtNetwork{Name: name})
	}
	for _, text := range m.devices {
		device, err := parseDevice(text)
		errs = append(errs, err)
		m.parsedDevices = append(m.parsedDevices, device)
	}
	for flag, allowed := range map[string][]string{
		"network-multiqueue":         {string(hyperv1.MultiQueueEnable), string(hyperv1.MultiQueueDisable)},
		"qos-class":                  {string(hyperv1.QoSClassBurstable), string(hyperv1.QoSClassGuaranteed)},
		"root-volume-volume-mode":    {"", string(corev1.PersistentVolumeFilesystem), string(corev1.PersistentVolumeBlock)},
		"root-volume-cache-strategy": {"", string(hyperv1.KubevirtCachingStrategyNone), string(hyperv1.KubevirtCachingStrategyPVC)},
	} {
		if value := fs.Lookup(flag).Value.String(); !slices.Contains(allowed, value) {
			errs = append(errs, fmt.Errorf("--%s %q: must be one of %s", flag, value, strings.Join(slices.DeleteFunc(allowed, func(s string) bool { return s == "" }), ", ")))
		}
	}
	return errors.Join(errs...)
}

// parseDevice parses "name" and "name,count:n".
func parseDevice(text string) (hyperv1.KubevirtHostDevice, error) {
	name, option, optional := strings.Cut(text, ",")
	device := hyperv1.KubevirtHostDevice{DeviceName: name, Count: 1}
	if optional {
		digits, ok := strings.CutPrefix(option, "count:")
		count, err := strconv.Atoi(digits)
		if !ok || err != nil || count < 1 {
			return device, fmt.Errorf("--host-device-name %q: must be name or name,count:n", text)
		}
		device.Count = count
	}
	if name == "" {
		return device, fmt.Errorf("--host-device-name %q: must be name or name,count:n", text)
	}
	return device, nil
}

func (m *kubevirtMachines) fill(np *hyperv1.NodePool) {
	volume := &hyperv1.KubevirtPersistentVolume{Size: ptr.To(*resource.NewQuantity(int64(m.volumeSize)<<30, resource.BinarySI))}
	if m.storageClass != "" {
		volume.StorageClass = ptr.To(m.storageClass)
	}
	if m.accessModes != "" {
		for mode := range strings.SplitSeq(m.accessModes, ",") {
			volume.AccessModes = append(volume.AccessModes, hyperv1.PersistentVolumeAccessMode(strings.TrimSpace(mode)))
		}
	}
	if m.volumeMode != "" {
		volume.VolumeMode = ptr.To(corev1.PersistentVolumeMode(m.volumeMode))
	}
	root := &hyperv1.KubevirtRootVolume{KubevirtVolume: hyperv1.KubevirtVolume{Type: hyperv1.KubevirtVolumeTypePersistent, Persistent: volume}}
	if m.cache != "" {
		root.CacheStrategy = &hyperv1.KubevirtCachingStrategy{Type: hyperv1.KubevirtCachingStrategyType(m.cache)}
	}
	if m.image != "" {
		root.Image = &hyperv1.KubevirtDiskImage{ContainerDiskImage: ptr.To(m.image)}
	}
	np.Spec.Platform.Kubevirt = &hyperv1.KubevirtNodePoolPlatform{
		RootVolume: root,
		Compute: &hyperv1.KubevirtCompute{
			Memory: ptr.To(resource.MustParse(m.memory)), Cores: ptr.To(m.cores), QosClass: ptr.To(hyperv1.QoSClass(m.qos)),
		},
		NetworkInterfaceMultiQueue: ptr.To(hyperv1.MultiQueueSetting(m.multiqueue)),
		AdditionalNetworks:         m.parsedNetworks,
		AttachDefaultNetwork:       ptr.To(m.defaultNetwork),
		NodeSelector:               m.nodeSelector,
		KubevirtHostDevices:        m.parsedDevices,
	}
}
