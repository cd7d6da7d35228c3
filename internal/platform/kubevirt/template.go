package kubevirt

import (
	"encoding/json"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/machine"
)

const (
	rootDisk       = "rhcos"
	defaultNetwork = "default"
	// bridgeMigration lets a virtual machine move that is bridged to the network of pods.
	bridgeMigration = "kubevirt.io/allow-pod-bridge-network-live-migration"
	// safeToEvict names the volumes of a virtual machine's pod whose loss does not matter when an autoscaler moves it.
	safeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
	hostname    = "kubernetes.io/hostname"
)

// podVolumes are those that KubeVirt puts into the pod of each virtual machine.
const podVolumes = "private,public,sockets,virt-bin-share-dir,libvirt-runtime,ephemeral-disks,container-disks,hotplug-disks"

// MachineTemplate implements platform.Platform.
func (Platform) MachineTemplate(in machine.Input) (*machine.Template, error) {
	p := in.NodePool.Spec.Platform.Kubevirt
	if err := check(p); err != nil {
		return nil, err
	}
	image, err := imageOf(in)
	if err != nil {
		return nil, err
	}
	boot, err := image.source(in)
	if err != nil {
		return nil, err
	}
	vm, err := patched(in, virtualMachine(in, p, boot))
	if err != nil {
		return nil, err
	}
	object, err := cloud.Template(templateKind, &struct {
		VirtualMachineTemplate map[string]any `json:"virtualMachineTemplate"`
		BootstrapCheck         bootstrapCheck `json:"virtualMachineBootstrapCheck"`
	}{vm, bootstrapCheck{CheckStrategy: "none"}})
	if err != nil {
		return nil, err
	}
	template := &machine.Template{Object: object}
	if constrained(in) {
		template.PoolAnnotations = map[string]string{hyperv1.NodePoolSupportsKubevirtTopologySpreadConstraintsAnnotation: "true"}
	}
	return template, nil
}

// constrained tells whether virtual machines are spread by constraints: in pools that are new, or change their version, or did so before. Others keep
// their affinity, so that no machine is replaced for it.
func constrained(in machine.Input) bool {
	pool := in.NodePool
	return pool.Annotations[hyperv1.NodePoolSupportsKubevirtTopologySpreadConstraintsAnnotation] == "true" ||
		pool.Status.Version == "" || in.Release != nil && pool.Status.Version != in.Release.Version
}

// virtualMachine describes a machine of a pool.
func virtualMachine(in machine.Input, p *hyperv1.KubevirtNodePoolPlatform, boot source) vmTemplate {
	pool := in.NodePool
	labels := func() map[string]string {
		return map[string]string{hyperv1.InfraIDLabel: in.HostedCluster.Spec.InfraID, hyperv1.NodePoolNameLabel: pool.Name}
	}
	vm := vmTemplate{Metadata: meta{Labels: labels()}}
	if c := credentialsOf(in.HostedCluster); c != nil {
		vm.Metadata.Namespace = c.InfraNamespace
	}
	vm.Spec = vmSpec{
		RunStrategy:         "Always",
		DataVolumeTemplates: []dataVolumeTemplate{rootVolume(p.RootVolume, boot)},
		Template: vmiTemplate{
			Metadata: meta{Labels: labels(), Annotations: map[string]string{safeToEvict: podVolumes}},
			Spec: vmiSpec{
				Domain: domainOf(p), EvictionStrategy: "External", NodeSelector: p.NodeSelector,
				Volumes: []volume{{Name: rootDisk, DataVolume: dataVolume{Name: rootDisk}}},
			},
		},
	}
	vmi := &vm.Spec.Template
	addNetworks(p, vmi)
	spread(in, &vmi.Spec)
	return vm
}

func domainOf(p *hyperv1.KubevirtNodePoolPlatform) domain {
	d := domain{Devices: devices{Disks: []disk{{Name: rootDisk, Disk: diskTarget{Bus: "virtio"}}}}}
	if c := p.Compute; c != nil {
		guaranteed := ptr.Deref(c.QosClass, hyperv1.QoSClassBurstable) == hyperv1.QoSClassGuaranteed
		amounts := corev1.ResourceList{}
		if c.Cores != nil && guaranteed {
			amounts[corev1.ResourceCPU] = *quantity(*c.Cores)
		} else if c.Cores != nil {
			d.CPU = &cpu{Cores: *c.Cores}
		}
		if c.Memory != nil && guaranteed {
			amounts[corev1.ResourceMemory] = *c.Memory
		} else if c.Memory != nil {
			d.Memory = &memory{Guest: *c.Memory}
		}
		if guaranteed {
			d.Resources = &corev1.ResourceRequirements{Requests: amounts, Limits: amounts.DeepCopy()}
		}
	}
	if ptr.Deref(p.NetworkInterfaceMultiQueue, "") == hyperv1.MultiQueueEnable {
		d.Devices.NetworkInterfaceMultiQueue = ptr.To(true)
	}
	n := 0
	for _, device := range p.KubevirtHostDevices {
		for range device.Count {
			n++
			d.Devices.HostDevices = append(d.Devices.HostDevices, hostDevice{Name: fmt.Sprintf("hostdevice-%d", n), DeviceName: device.DeviceName})
		}
	}
	return d
}

func addNetworks(p *hyperv1.KubevirtNodePoolPlatform, vmi *vmiTemplate) {
	to := &vmi.Spec
	if ptr.Deref(p.AttachDefaultNetwork, true) {
		to.Domain.Devices.Interfaces = append(to.Domain.Devices.Interfaces, nic{Name: defaultNetwork})
		to.Networks = append(to.Networks, network{Name: defaultNetwork, Pod: &struct{}{}})
		vmi.Metadata.Annotations[bridgeMigration] = ""
	}
	for i, n := range p.AdditionalNetworks {
		name := fmt.Sprintf("iface%d_%s", i+1, strings.ReplaceAll(n.Name, "/", "-"))
		to.Domain.Devices.Interfaces = append(to.Domain.Devices.Interfaces, nic{Name: name})
		to.Networks = append(to.Networks, network{Name: name, Multus: &multus{NetworkName: n.Name}})
	}
}

// spread has the virtual machines of a pool on different nodes.
func spread(in machine.Input, vmi *vmiSpec) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{hyperv1.NodePoolNameLabel: in.NodePool.Name}}
	if constrained(in) {
		vmi.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: hostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector},
		}
		return
	}
	vmi.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
		{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: selector, TopologyKey: hostname}},
	}}}
}

func rootVolume(root *hyperv1.KubevirtRootVolume, boot source) dataVolumeTemplate {
	dv := dataVolumeTemplate{Metadata: meta{Name: rootDisk, Labels: map[string]string{hyperv1.IsKubeVirtRHCOSVolumeLabel: "true"}}, Spec: dataVolumeSpec{Source: boot}}
	if root.Persistent != nil {
		dv.Spec.Storage = storageOf(root.Persistent)
	}
	return dv
}

func storageOf(p *hyperv1.KubevirtPersistentVolume) storage {
	s := storage{VolumeMode: p.VolumeMode, StorageClassName: p.StorageClass}
	for _, mode := range p.AccessModes {
		s.AccessModes = append(s.AccessModes, string(mode))
	}
	if p.Size != nil {
		s.Resources = &corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *p.Size}}
	}
	return s
}

// Bounds of what annotations may do to a template.
const (
	maxPatch  = 64 << 10
	maxResult = 256 << 10
)

// patched applies the patches that annotations hold: that of the HostedCluster, then that of the NodePool.
func patched(in machine.Input, vm vmTemplate) (map[string]any, error) {
	doc, err := json.Marshal(vm)
	if err != nil {
		return nil, fmt.Errorf("encoding a virtual machine: %w", err)
	}
	for _, from := range []struct {
		object      string
		annotations map[string]string
	}{
		{"HostedCluster " + names.BackReference(in.HostedCluster), in.HostedCluster.Annotations}, {"NodePool " + names.BackReference(in.NodePool), in.NodePool.Annotations},
	} {
		text := from.annotations[hyperv1.JSONPatchAnnotation]
		if text == "" {
			continue
		}
		if doc, err = apply(doc, text); err != nil {
			return nil, fmt.Errorf("annotation %s of %s: %w", hyperv1.JSONPatchAnnotation, from.object, err)
		}
	}
	out := map[string]any{}
	if err := json.Unmarshal(doc, &out); err != nil {
		return nil, fmt.Errorf("annotation %s leaves no virtual machine: change its operations", hyperv1.JSONPatchAnnotation)
	}
	return out, nil
}

func apply(doc []byte, text string) ([]byte, error) {
	if len(text) > maxPatch {
		return nil, fmt.Errorf("it has %d bytes, and may have %d", len(text), maxPatch)
	}
	patch, err := jsonpatch.DecodePatch([]byte(text))
	if err != nil {
		return nil, fmt.Errorf(`it is no JSON patch: write for example [{"op": "replace", "path": "/spec/template/spec/domain/cpu/cores", "value": 3}]`)
	}
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = maxResult
	out, err := patch.ApplyWithOptions(doc, options)
	if err != nil {
		return nil, fmt.Errorf("it does not fit the virtual machine, whose parts are metadata and spec: %w", err)
	}
	if len(out) > maxResult {
		return nil, fmt.Errorf("it makes a virtual machine of %d bytes, which may have %d", len(out), maxResult)
	}
	return out, nil
}
