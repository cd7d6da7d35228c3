package openshift

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
)

// storage switches the storage operators on, and on KubeVirt brings the driver, which has none.
func storage(in Input) ([]Action, error) {
	if in.on(hyperv1.IBMCloudPlatform, hyperv1.PowerVSPlatform) {
		return nil, nil
	}
	operator := func(kind, name string) Action {
		return edit(operatorV1, kind, "", name, func(live map[string]any) {
			spec := section(live, "spec")
			spec["logLevel"], spec["operatorLogLevel"], spec["managementState"] = "Normal", "Normal", "Managed"
		})
	}
	actions := []Action{operator("CSISnapshotController", cluster), operator("Storage", cluster)}
	var drivers []string
	switch {
	case in.on(hyperv1.AWSPlatform):
		drivers = []string{"ebs.csi.aws.com"}
	case in.on(hyperv1.OpenStackPlatform):
		drivers = []string{"cinder.csi.openstack.org", "manila.csi.openstack.org"}
	case in.on(hyperv1.AzurePlatform) && in.ManagedService != payload.ARO:
		drivers = []string{"disk.csi.azure.com", "file.csi.azure.com"}
	}
	for _, d := range drivers {
		actions = append(actions, operator("ClusterCSIDriver", d))
	}
	driver, err := kubevirtDriver(in)
	return append(actions, driver...), err
}

// kubevirtDriver gives pods volumes of the cluster that the virtual machines run in.
func kubevirtDriver(in Input) ([]Action, error) {
	kubevirt := in.HCP.Spec.Platform.Kubevirt
	if !in.on(hyperv1.KubevirtPlatform) || kubevirt == nil {
		return nil, nil
	}
	settings := hyperv1.KubevirtStorageDriverSpec{}
	if kubevirt.StorageDriver != nil {
		settings = *kubevirt.StorageDriver
	}
	if settings.Type == hyperv1.NoneKubevirtStorageDriverConfigType {
		return nil, nil
	}
	objects := load("kubevirt-csi.yaml")
	daemons := find(objects, "DaemonSet")
	for _, item := range containersOf(daemons) {
		c := item.(map[string]any)
		tag := c["image"].(string)
		image, ok := in.Release.ImageFor(tag)
		if !ok {
			return nil, errors.New("the release has no image " + tag + ", which the storage driver of KubeVirt consists of")
		}
		c["image"] = image
	}
	manual := settings.Manual
	if settings.Type != hyperv1.ManualKubevirtStorageDriverConfigType {
		manual = nil
	}
	class := func(name, infra string, isDefault bool) *unstructured.Unstructured {
		parameters := map[string]any{"bus": "scsi"}
		if infra != "" {
			parameters["infraStorageClassName"] = infra
		}
		o := object("storage.k8s.io/v1", "StorageClass", "", name, map[string]any{"provisioner": "csi.kubevirt.io", "parameters": parameters, "allowVolumeExpansion": true})
		if isDefault {
			annotate(o, "storageclass.kubernetes.io/is-default-class", "true")
		}
		return o
	}
	snapshots := func(name, infra string) *unstructured.Unstructured {
		o := object("snapshot.storage.k8s.io/v1", "VolumeSnapshotClass", "", name, map[string]any{"driver": "csi.kubevirt.io", "deletionPolicy": "Delete"})
		if infra != "" {
			o.Object["parameters"] = map[string]any{"infraSnapshotClassName": infra}
		}
		return o
	}
	if manual == nil {
		objects = append(objects, class("kubevirt-csi-infra-default", "", true), snapshots("kubevirt-csi-snapshot", ""))
		return apply(objects...), nil
	}
	for _, m := range manual.StorageClassMapping {
		objects = append(objects, class(m.GuestStorageClassName, m.InfraStorageClassName, false))
	}
	for _, m := range manual.VolumeSnapshotClassMapping {
		objects = append(objects, snapshots(m.GuestVolumeSnapshotClassName, m.InfraVolumeSnapshotClassName))
	}
	return apply(objects...), nil
}

// containersOf are the containers of a workload of an asset.
func containersOf(workload *unstructured.Unstructured) []any {
	containers, _ := section(workload.Object, "spec", "template", "spec")["containers"].([]any)
	return containers
}

func containerOf(workload *unstructured.Unstructured) map[string]any {
	return containersOf(workload)[0].(map[string]any)
}
