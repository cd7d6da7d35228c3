package payload

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hcp.internal/platform/internal/image"
	"hcp.internal/platform/test/standin/programs"
	"hcp.internal/platform/test/standin/run"
)

// Settings say what a payload is made of.
type Settings struct {
	Repository string // such as 10.244.0.1:5000/standin: images are ⟨repository⟩/⟨tag⟩ and the release is ⟨repository⟩/release:⟨version⟩
	Version    string // of the payload, such as 4.22.0
	Kubernetes string // version of the bundle, such as 1.36.3

	Standin, Kube, Kubectl string // programs on this machine
	Tools                  []image.File
	CABundle               []byte
	// Own are images that aren't the stand-in's, by tag; references by digest.
	Own map[string]string
	// Without are tags that the payload shall lack.
	Without []string
}

// more are tags that are only named in variables and configurations.
const more = `aws-ebs-csi-driver aws-ebs-csi-driver-operator azure-cloud-node-manager azure-disk-csi-driver azure-disk-csi-driver-operator azure-file-csi-driver
	azure-file-csi-driver-operator cloud-network-config-controller cluster-capi-operator cluster-cloud-controller-manager-operator container-networking-plugins coredns
	csi-driver-manila csi-driver-manila-operator csi-driver-nfs csi-node-driver-registrar csi-snapshot-controller deployer docker-builder docker-registry egress-router-cni
	gcp-pd-csi-driver gcp-pd-csi-driver-operator haproxy-router-haproxy28 haproxy-router-haproxy32 ibm-vpc-block-csi-driver ibm-vpc-block-csi-driver-operator kube-proxy
	kube-rbac-proxy machine-config-operator metallb-frr multus-admission-controller multus-cni multus-networkpolicy multus-route-override-cni multus-whereabouts-ipam-cni
	network-interface-bond-cni network-metrics-daemon networking-console-plugin openstack-cinder-csi-driver openstack-cinder-csi-driver-operator operator-registry
	ovirt-csi-driver ovirt-csi-driver-operator ovn-kubernetes pod powervs-block-csi-driver powervs-block-csi-driver-operator tools volume-data-source-validator
	vsphere-csi-driver vsphere-csi-driver-operator vsphere-csi-driver-syncer vsphere-problem-detector`

// kubernetesTags are the images with the bundle of plain Kubernetes.
var kubernetesTags = []string{"etcd", "hyperkube"}

// Tags are those of the images that the stand-in plays, sorted.
func Tags() []string {
	tags := append(strings.Fields(more), kubernetesTags...)
	tags = append(tags, "cli")
	for _, p := range programs.Table {
		tags = append(tags, p.Image)
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// Push builds the payload and uploads what the registry lacks. It returns the release by tag.
func Push(ctx context.Context, s Settings) (string, error) {
	layers, err := newLayers(s)
	if err != nil {
		return "", err
	}
	refs := maps.Clone(s.Own)
	if refs == nil {
		refs = map[string]string{}
	}
	for _, tag := range Tags() {
		if refs[tag] != "" || slices.Contains(s.Without, tag) {
			continue
		}
		img, err := layers.image(s, tag)
		if err != nil {
			return "", fmt.Errorf("building image %s: %w", tag, err)
		}
		if refs[tag], err = image.Push(ctx, s.Repository+"/"+tag+":"+s.Version, img); err != nil {
			return "", err
		}
	}
	for _, tag := range s.Without {
		delete(refs, tag)
	}
	img, err := layers.release(s, refs)
	if err != nil {
		return "", fmt.Errorf("building the release image of %s: %w", s.Version, err)
	}
	ref := s.Repository + "/release:" + s.Version
	_, err = image.Push(ctx, ref, img)
	return ref, err
}

// layers are shared by all images.
type layers struct{ base, standin, kubectl, kube v1.Layer }

func newLayers(s Settings) (layers, error) {
	var l layers
	files := []image.File{{Path: "/usr/bin/standin", Mode: 0o755, Source: s.Standin}}
	for _, name := range programNames() {
		files = append(files, image.File{Path: "/usr/bin/" + name, Link: "standin"})
	}
	assets, err := assetFiles()
	if err != nil {
		return l, err
	}
	kube := []image.File{{Path: "/usr/bin/kube", Mode: 0o755, Source: s.Kube}}
	base := append(image.Base(s.CABundle), image.File{Path: "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", Data: s.CABundle}, image.File{Path: "/usr/bin/sh", Link: "bash"})
	for _, set := range []struct {
		to    *v1.Layer
		files []image.File
	}{
		{&l.base, append(base, s.Tools...)},
		{&l.standin, append(files, assets...)},
		{&l.kubectl, []image.File{{Path: "/usr/bin/kubectl", Mode: 0o755, Source: s.Kubectl}, {Path: "/usr/bin/oc", Link: "kubectl"}}},
		{&l.kube, kube},
	} {
		if *set.to, err = image.NewLayer(set.files...); err != nil {
			return l, err
		}
	}
	return l, nil
}

// programNames are what the stand-in is called by.
func programNames() []string {
	names := []string{programs.EntryPoint, "hyperkube", "nslookup", "etcdctl"}
	for _, p := range programs.Table {
		if p.Name != "haproxy" { // a real one is among the tools
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func config(s Settings, tag string) image.Config {
	return image.Config{
		Entrypoint: []string{"/usr/bin/" + programs.EntryPoint}, Env: []string{run.ImageVariable + "=" + tag, run.VersionVariable + "=" + s.Version},
		Labels: map[string]string{"io.openshift.release": s.Version},
	}
}

func (l layers) image(s Settings, tag string) (v1.Image, error) {
	use := []v1.Layer{l.base, l.standin}
	switch {
	case slices.Contains(kubernetesTags, tag):
		use = append(use, l.kube)
	case tag == "cli":
		use = append(use, l.kubectl)
	}
	return image.New(config(s, tag), use...)
}

// stream is an ImageStream, which is what image-references holds.
type stream struct {
	Kind       string     `json:"kind"`
	APIVersion string     `json:"apiVersion"`
	Metadata   object     `json:"metadata"`
	Spec       streamSpec `json:"spec"`
}

type streamSpec struct {
	Tags []object `json:"tags"`
}

// References is the content of image-references.
func References(version, kubernetes string, refs map[string]string) ([]byte, error) {
	s := stream{Kind: "ImageStream", APIVersion: "image.openshift.io/v1", Metadata: object{"name": version}}
	for _, tag := range slices.Sorted(maps.Keys(refs)) {
		t := object{"name": tag, "from": object{"kind": "DockerImage", "name": refs[tag]}}
		if tag == "hyperkube" {
			t["annotations"] = object{"io.openshift.build.versions": "kubernetes=" + kubernetes}
		}
		s.Spec.Tags = append(s.Spec.Tags, t)
	}
	return json.MarshalIndent(s, "", "  ")
}

// release is the release image: the one of the cluster-version-operator with the manifests of the payload.
func (l layers) release(s Settings, refs map[string]string) (v1.Image, error) {
	references, err := References(s.Version, s.Kubernetes, refs)
	if err != nil {
		return nil, err
	}
	files, err := versionFiles()
	if err != nil {
		return nil, err
	}
	manifests, err := releaseFiles(s.Version)
	if err != nil {
		return nil, err
	}
	metadata, err := json.Marshal(object{"kind": "cincinnati-metadata-v0", "version": s.Version, "previous": []string{}})
	if err != nil {
		return nil, err
	}
	files = append(append(files, manifests...),
		image.File{Path: "/release-manifests/image-references", Data: references}, image.File{Path: "/release-manifests/release-metadata", Data: metadata})
	layer, err := image.NewLayer(files...)
	if err != nil {
		return nil, err
	}
	return image.New(config(s, "cluster-version-operator"), l.base, l.standin, layer)
}
