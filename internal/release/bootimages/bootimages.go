// Package bootimages reads which images machines boot from, as an OpenShift payload lists them for each architecture and place.
package bootimages

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Path of the file in a release image: a ConfigMap.
const Path = "release-manifests/0000_50_installer_coreos-bootimages.yaml"

// Bounds of what is believed of the file.
const (
	maxText    = 2048 // of one value; the longest are URLs
	maxStreams = 10
	maxRegions = 1000
)

// Streams are the lists of a release: one by default and, where a release has several, each by name.
type Streams struct {
	// Default is what machines boot when nobody asks for a stream.
	Default Stream
	// Named are all streams by name, such as rhel-10; empty in a release with one stream only.
	Named map[string]Stream
}

// Stream has the images of each architecture, by Kubernetes' name of it.
type Stream map[string]*Images

// Images are those of one architecture. What a release has no image for is empty.
type Images struct {
	// AWS and AWSWindows have the AMI of each region.
	AWS, AWSWindows map[string]string
	GCP             GCP
	// KubeVirt is the digest reference of a container disk.
	KubeVirt  string
	OpenStack Download
	// PowerVS has an object in IBM's storage for each region of it.
	PowerVS map[string]StoredObject
	// Azure has the marketplace's image without a purchase plan for each generation of virtual machines: Gen1, Gen2.
	Azure map[string]Marketplace
}

// GCP is an image in a project of Google's.
type GCP struct{ Project, Name string }

// Download is a file, compressed with gzip, and the checksum of what is downloaded.
type Download struct{ URL, SHA256 string }

// StoredObject is a file in IBM's object storage.
type StoredObject struct{ Release, Bucket, Object string }

// Marketplace names an image of Azure's marketplace.
type Marketplace struct{ Publisher, Offer, SKU, Version string }

// architectures are Kubernetes' names of those that streams call otherwise.
var architectures = map[string]string{"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "s390x": "s390x"}

// Parse reads the file. It comes from an image that a user named, so it is bounded in everything; unknown parts are left alone.
func Parse(file []byte) (*Streams, error) {
	var cm struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(file, &cm); err != nil {
		return nil, fmt.Errorf("%s is not valid YAML", Path)
	}
	var one document
	if err := json.Unmarshal([]byte(cm.Data["stream"]), &one); err != nil {
		return nil, fmt.Errorf("data.stream of %s is not valid JSON", Path)
	}
	out := &Streams{}
	var err error
	if out.Default, err = one.stream(); err != nil {
		return nil, err
	}
	if cm.Data["streams"] == "" {
		return out, nil
	}
	var several map[string]document
	if err := json.Unmarshal([]byte(cm.Data["streams"]), &several); err != nil {
		return nil, fmt.Errorf("data.streams of %s is not valid JSON", Path)
	}
	if len(several) > maxStreams {
		return nil, fmt.Errorf("%s has %d streams, at most %d are read", Path, len(several), maxStreams)
	}
	out.Named = map[string]Stream{}
	for _, name := range slices.Sorted(maps.Keys(several)) {
		if out.Named[name], err = several[name].stream(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// For gives the images of an architecture. stream may be empty. A release with one stream has it under every name.
func (s *Streams) For(stream, arch string) (*Images, error) {
	if s == nil {
		return nil, errors.New("it lists no images that machines boot from (" + Path + ")")
	}
	chosen := s.Default
	if named, ok := s.Named[stream]; ok {
		chosen = named
	} else if stream != "" && len(s.Named) > 0 {
		return nil, fmt.Errorf("it has no stream %s: set spec.osImageStream.name to one of %s", stream, strings.Join(slices.Sorted(maps.Keys(s.Named)), ", "))
	}
	images, ok := chosen[arch]
	if !ok {
		return nil, fmt.Errorf("it has no images for %s: set spec.arch to one of %s", arch, strings.Join(slices.Sorted(maps.Keys(chosen)), ", "))
	}
	return images, nil
}

// document is the part of a stream that is used.
type document struct {
	Architectures map[string]struct {
		Artifacts struct {
			OpenStack struct {
				Formats map[string]struct {
					Disk struct {
						Location string `json:"location"`
						SHA256   string `json:"sha256"`
					} `json:"disk"`
				} `json:"formats"`
			} `json:"openstack"`
		} `json:"artifacts"`
		Images struct {
			AWS regions `json:"aws"`
			GCP struct {
				Project string `json:"project"`
				Name    string `json:"name"`
			} `json:"gcp"`
			KubeVirt struct {
				DigestRef string `json:"digest-ref"`
			} `json:"kubevirt"`
			PowerVS struct {
				Regions map[string]StoredObject `json:"regions"`
			} `json:"powervs"`
		} `json:"images"`
		Extensions struct {
			Windows     regions `json:"aws-winli"`
			Marketplace struct {
				Azure struct {
					Free map[string]Marketplace `json:"no-purchase-plan"`
				} `json:"azure"`
			} `json:"marketplace"`
		} `json:"rhel-coreos-extensions"`
	} `json:"architectures"`
}

type regions struct {
	Regions map[string]struct {
		Image string `json:"image"`
	} `json:"regions"`
}

func (r regions) images() map[string]string {
	out := map[string]string{}
	for region, of := range r.Regions {
		out[region] = of.Image
	}
	return out
}

func (d document) stream() (Stream, error) {
	out := Stream{}
	for name, a := range d.Architectures {
		arch, ok := architectures[name]
		if !ok {
			continue
		}
		disk := a.Artifacts.OpenStack.Formats["qcow2.gz"].Disk
		i := &Images{
			AWS: a.Images.AWS.images(), AWSWindows: a.Extensions.Windows.images(), GCP: GCP(a.Images.GCP), KubeVirt: a.Images.KubeVirt.DigestRef,
			OpenStack: Download{URL: disk.Location, SHA256: disk.SHA256}, PowerVS: a.Images.PowerVS.Regions, Azure: map[string]Marketplace{},
		}
		for generation, image := range a.Extensions.Marketplace.Azure.Free {
			i.Azure[strings.TrimPrefix(generation, "hyperV")] = image
		}
		if err := i.check(name); err != nil {
			return nil, err
		}
		out[arch] = i
	}
	return out, nil
}

// check keeps what could not be a name of anything out of manifests and messages.
func (i *Images) check(arch string) error {
	if len(i.AWS) > maxRegions || len(i.AWSWindows) > maxRegions || len(i.PowerVS) > maxRegions || len(i.Azure) > maxRegions {
		return fmt.Errorf("%s has images of more than %d regions for %s", Path, maxRegions, arch)
	}
	texts := slices.Concat([]string{i.GCP.Project, i.GCP.Name, i.KubeVirt, i.OpenStack.URL, i.OpenStack.SHA256},
		slices.Collect(maps.Keys(i.AWS)), slices.Collect(maps.Values(i.AWS)), slices.Collect(maps.Keys(i.AWSWindows)), slices.Collect(maps.Values(i.AWSWindows)))
	for region, o := range i.PowerVS {
		texts = append(texts, region, o.Release, o.Bucket, o.Object)
	}
	for generation, m := range i.Azure {
		texts = append(texts, generation, m.Publisher, m.Offer, m.SKU, m.Version)
	}
	for _, text := range texts {
		if len(text) > maxText || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("%s names an image for %s with a text that is none", Path, arch)
		}
	}
	return nil
}
