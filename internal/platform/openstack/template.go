package openstack

import (
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/release/bootimages"
)

type machineSpec struct {
	Flavor string     `json:"flavor"`
	Image  imageParam `json:"image"`
	Ports  []port     `json:"ports,omitempty"`
}

// imageParam is one of these.
type imageParam struct {
	Filter   *imageFilter `json:"filter,omitempty"`
	ImageRef *imageRef    `json:"imageRef,omitempty"`
}

type imageFilter struct {
	Name string `json:"name"`
}

type imageRef struct {
	Name string `json:"name"`
}

type port struct {
	Network             *hyperv1.NetworkParam `json:"network,omitempty"`
	Description         string                `json:"description,omitempty"`
	AllowedAddressPairs []hyperv1.AddressPair `json:"allowedAddressPairs,omitempty"`
	VNICType            string                `json:"vnicType,omitempty"`
	DisablePortSecurity *bool                 `json:"disablePortSecurity,omitempty"`
}

// MachineTemplate implements platform.Platform.
func (Platform) MachineTemplate(in machine.Input) (*machine.Template, error) {
	p := in.NodePool.Spec.Platform.OpenStack
	if p == nil || p.Flavor == "" {
		return nil, errors.New("spec.platform.openstack.flavor is missing: name the flavor of machines")
	}
	spec := &machineSpec{Flavor: p.Flavor, Ports: portsOf(p.AdditionalPorts)}
	template := &machine.Template{FailureDomain: p.AvailabilityZone}
	if p.ImageName != "" {
		spec.Image.Filter = &imageFilter{Name: p.ImageName}
	} else {
		image, err := imageOf(in)
		if err != nil {
			return nil, err
		}
		spec.Image.ImageRef = &imageRef{Name: image.GetName()}
		template.Companions = []client.Object{image}
	}
	object, err := cloud.Template(templateKind, spec)
	if err != nil {
		return nil, err
	}
	template.Object = object
	return template, nil
}

// portsOf are the ports of a machine: the first is the one that it would have without any others.
func portsOf(additional []hyperv1.PortSpec) []port {
	if len(additional) == 0 {
		return nil
	}
	ports := []port{{}}
	for _, a := range additional {
		p := port{Network: a.Network, Description: a.Description, AllowedAddressPairs: a.AllowedAddressPairs, VNICType: a.VNICType}
		switch a.PortSecurityPolicy {
		case "Enabled":
			p.DisablePortSecurity = new(bool)
		case "Disabled":
			disabled := true
			p.DisablePortSecurity = &disabled
		}
		ports = append(ports, p)
	}
	return ports
}

type imageSpec struct {
	CloudCredentialsRef credentialsRef `json:"cloudCredentialsRef"`
	ManagementPolicy    string         `json:"managementPolicy"`
	Resource            imageResource  `json:"resource"`
}

type credentialsRef struct {
	SecretName string `json:"secretName"`
	CloudName  string `json:"cloudName"`
}

type imageResource struct {
	Name    string       `json:"name"`
	Content imageContent `json:"content"`
}

type imageContent struct {
	DiskFormat string        `json:"diskFormat"`
	Download   imageDownload `json:"download"`
}

type imageDownload struct {
	URL        string     `json:"url"`
	Decompress string     `json:"decompress"`
	Hash       *imageHash `json:"hash,omitempty"`
}

type imageHash struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"value"`
}

const imageField = "spec.platform.openstack.imageName"

// imageOf is the image of the release and stream, imported once for all pools of the cluster, and going with the cluster.
func imageOf(in machine.Input) (client.Object, error) {
	o, err := specOf(in.HostedCluster)
	if err != nil {
		return nil, err
	}
	images, err := cloud.Images(in, imageField)
	if err != nil {
		return nil, err
	}
	if images.OpenStack.URL == "" {
		return nil, cloud.Missing(in, "image for OpenStack", imageField)
	}
	hc, name := in.HostedCluster, "rhcos-"+in.Release.Version
	if stream := in.NodePool.Spec.OSImageStream.Name; stream != "" && !standard(in, images) {
		name += "-" + stream
	}
	spec := &imageSpec{
		CloudCredentialsRef: credentialsRef{SecretName: o.IdentityRef.Name, CloudName: o.IdentityRef.CloudName}, ManagementPolicy: "managed",
		Resource: imageResource{Name: hc.Name + "-" + name, Content: imageContent{DiskFormat: "qcow2", Download: imageDownload{URL: images.OpenStack.URL, Decompress: "gz"}}},
	}
	if sum := images.OpenStack.SHA256; sum != "" {
		spec.Resource.Content.Download.Hash = &imageHash{Algorithm: "sha256", Value: sum}
	}
	object, err := cloud.Cluster(imageKind, hc, names.NamespaceOf(hc), name, spec)
	if err != nil {
		return nil, err
	}
	return object, nil
}

// standard tells whether these are the images of pools that name no stream: they have one name, whichever way a pool asks for them.
func standard(in machine.Input, images *bootimages.Images) bool {
	in.NodePool = in.NodePool.DeepCopy()
	in.NodePool.Spec.OSImageStream.Name = ""
	unnamed, err := cloud.Images(in, imageField)
	return err == nil && unnamed.OpenStack == images.OpenStack
}

// PoolConditions implements platform.PoolReporter.
func (Platform) PoolConditions(in machine.Input) (set []hyperv1.NodePoolCondition, absent []string) {
	p := in.NodePool.Spec.Platform.OpenStack
	if p == nil {
		return nil, []string{hyperv1.NodePoolValidPlatformImageType}
	}
	if p.ImageName != "" {
		return []hyperv1.NodePoolCondition{cloud.ImageCondition(fmt.Sprintf("Bootstrap OpenStack image is %q", p.ImageName), nil)}, nil
	}
	image, err := imageOf(in)
	message := ""
	if err == nil {
		message = fmt.Sprintf("Bootstrap OpenStack image is imported as %q", image.GetName())
	}
	return []hyperv1.NodePoolCondition{cloud.ImageCondition(message, err)}, nil
}
