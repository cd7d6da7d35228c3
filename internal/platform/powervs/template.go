package powervs

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/machine"
)

type machineSpec struct {
	ServiceInstanceID string                            `json:"serviceInstanceID"`
	Image             *hyperv1.PowerVSResourceReference `json:"image,omitempty"`
	ImageRef          *imageRef                         `json:"imageRef,omitempty"`
	Network           hyperv1.PowerVSResourceReference  `json:"network"`
	SystemType        string                            `json:"systemType"`
	ProcessorType     string                            `json:"processorType"`
	Processors        intstr.IntOrString                `json:"processors"`
	MemoryGiB         int32                             `json:"memoryGiB"`
}

type imageRef struct {
	Name string `json:"name"`
}

// Defaults of what pools leave out.
const (
	storageType  = "tier1"
	deletePolicy = "delete"
	systemType   = "s922"
	processors   = "0.5"
	memoryGiB    = 32
)

// processorTypes are those of pools by the provider's names.
var processorTypes = map[hyperv1.PowerVSNodePoolProcType]string{
	"": "Shared", hyperv1.PowerVSNodePoolSharedProcType: "Shared", hyperv1.PowerVSNodePoolCappedProcType: "Capped", hyperv1.PowerVSNodePoolDedicatedProcType: "Dedicated",
}

// MachineTemplate implements platform.Platform.
func (Platform) MachineTemplate(in machine.Input) (*machine.Template, error) {
	p := in.NodePool.Spec.Platform.PowerVS
	if p == nil {
		return nil, errors.New("spec.platform.powervs is missing: describe the servers there")
	}
	cluster, err := specOf(in.HostedCluster)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the HostedCluster's %w", err)
	case cluster.Subnet == nil:
		return nil, errors.New("the HostedCluster's spec.platform.powervs.subnet is missing: name the network of machines")
	}
	kind, ok := processorTypes[p.ProcessorType]
	if !ok {
		return nil, fmt.Errorf("spec.platform.powervs.processorType is %q: write shared, capped or dedicated", p.ProcessorType)
	}
	spec := &machineSpec{
		ServiceInstanceID: cluster.ServiceInstanceID, Network: *cluster.Subnet, SystemType: p.SystemType, ProcessorType: kind, Processors: p.Processors, MemoryGiB: p.MemoryGiB,
	}
	if spec.SystemType == "" {
		spec.SystemType = systemType
	}
	if s := spec.Processors.String(); s == "" || s == "0" {
		spec.Processors = intstr.FromString(processors)
	}
	if spec.MemoryGiB == 0 {
		spec.MemoryGiB = memoryGiB
	}
	template := &machine.Template{}
	if p.Image != nil {
		spec.Image = p.Image
	} else {
		image, err := imageOf(in)
		if err != nil {
			return nil, err
		}
		spec.ImageRef, template.Companions = &imageRef{Name: image.GetName()}, []client.Object{image}
	}
	if template.Object, err = cloud.Template(templateKind, spec); err != nil {
		return nil, err
	}
	return template, nil
}

type imageSpec struct {
	ClusterName       string `json:"clusterName"`
	ServiceInstanceID string `json:"serviceInstanceID"`
	Bucket            string `json:"bucket"`
	Object            string `json:"object"`
	Region            string `json:"region"`
	StorageType       string `json:"storageType"`
	DeletePolicy      string `json:"deletePolicy"`
}

// storageRegions are the regions of IBM's object storage by those of its Power servers. Every other has the first one.
var storageRegions = map[string]string{
	"dal": "us-south", "us-south": "us-south", "us-east": "us-east", "eu-de": "eu-de", "lon": "eu-gb", "osa": "jp-osa", "syd": "au-syd", "sao": "br-sao", "tor": "ca-tor", "tok": "jp-tok",
}

const otherRegions = "us-south"

const imageField = "spec.platform.powervs.image"

// imageOf is the image of the release, imported into the service instance. How it is stored there, and whether it stays, is a part of its name: it never
// changes, and other pools may want it otherwise.
func imageOf(in machine.Input) (client.Object, error) {
	cluster, err := specOf(in.HostedCluster)
	if err != nil {
		return nil, err
	}
	images, err := cloud.Images(in, imageField)
	if err != nil {
		return nil, err
	}
	region, ok := storageRegions[cluster.Region]
	if !ok {
		region = otherRegions
	}
	found, ok := images.PowerVS[region]
	if !ok || found.Object == "" {
		return nil, cloud.Missing(in, "image for PowerVS in region "+region, imageField)
	}
	p, hc := in.NodePool.Spec.Platform.PowerVS, in.HostedCluster
	spec := &imageSpec{
		ClusterName: hc.Spec.InfraID, ServiceInstanceID: cluster.ServiceInstanceID, Bucket: found.Bucket, Object: found.Object, Region: region,
		StorageType: string(p.StorageType), DeletePolicy: string(p.ImageDeletePolicy),
	}
	name := strings.ReplaceAll(found.Release, ".", "-")
	if spec.StorageType = cmp.Or(spec.StorageType, storageType); spec.StorageType != storageType {
		name += "-" + spec.StorageType
	}
	if spec.DeletePolicy = cmp.Or(spec.DeletePolicy, deletePolicy); spec.DeletePolicy != deletePolicy {
		name += "-" + spec.DeletePolicy
	}
	object, err := cloud.Cluster(imageKind, hc, names.NamespaceOf(hc), name, spec)
	if err != nil {
		return nil, err
	}
	return object, nil
}

// PoolConditions implements platform.PoolReporter.
func (Platform) PoolConditions(in machine.Input) (set []hyperv1.NodePoolCondition, absent []string) {
	p := in.NodePool.Spec.Platform.PowerVS
	if p == nil || p.Image != nil {
		return nil, []string{hyperv1.NodePoolValidPlatformImageType}
	}
	image, err := imageOf(in)
	message := ""
	if err == nil {
		message = fmt.Sprintf("Bootstrap PowerVS image is imported as %q", image.GetName())
	}
	return []hyperv1.NodePoolCondition{cloud.ImageCondition(message, err)}, nil
}
