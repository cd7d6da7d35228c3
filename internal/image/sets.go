package image

import (
	"fmt"
	"io/fs"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hcp.internal/platform/internal/contract/capiproxy"
	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/version"
)

const stickyTmp = 0o777 | fs.ModeSticky

// operatorNames are the names that the operators' binary answers to.
var operatorNames = []string{
	"hypershift-operator", "control-plane-operator", "hosted-cluster-config-operator", "control-plane-pki-operator", "ignition-server",
	"capi-provider-local", "package-operator-manager", "package-operator-remote-phase-manager",
}

// sidecarNames are the names of stock programs that manifests call and our small ones stand in for.
var sidecarNames = []string{"proxy-server", "proxy-agent", "machine-config-daemon"}

// shellNames are the shells that manifests of OpenShift payloads start our programs by, and what their probes call.
var shellNames = []string{"sh", "bash", "test"}

// kubeNames are the names that the Kubernetes bundle answers to.
var kubeNames = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet"}

// Binaries are paths of programs on this machine.
type Binaries struct {
	Hypershift, Operators, Cloud, Sidecar, Pause, CoreDNS, Flannel, LocalStorage, Webapp string
	CABundle                                                                             []byte // of the machine; may be empty
}

// Platform is our own image: the four binaries with the names that manifests call.
// Each binary has a layer of its own, so that changing one sends only that one.
func Platform(b Binaries) (v1.Image, error) {
	operators := []File{{Path: "/usr/bin/hcp-operators", Mode: 0o755, Source: b.Operators}}
	for _, n := range operatorNames {
		operators = append(operators, File{Path: "/usr/bin/" + n, Link: "hcp-operators"})
	}
	return static(Config{Entrypoint: []string{"/usr/bin/hypershift"}, Labels: map[string]string{capiproxy.ImageLabel: "true", images.LabelVersion: version.Semver()}},
		Base(b.CABundle),
		sidecar(b),
		operators,
		[]File{{Path: "/usr/bin/hcp-cloud", Mode: 0o755, Source: b.Cloud}},
		[]File{{Path: "/usr/bin/hypershift", Mode: 0o755, Source: b.Hypershift}},
	)
}

func sidecar(b Binaries) []File {
	files := []File{{Path: "/usr/bin/hcp-sidecar", Mode: 0o755, Source: b.Sidecar}}
	for _, n := range sidecarNames {
		files = append(files, File{Path: "/usr/bin/" + n, Link: "hcp-sidecar"})
	}
	for _, n := range shellNames {
		files = append(files, File{Path: "/bin/" + n, Link: "/usr/bin/hcp-sidecar"})
	}
	return files
}

// Sidecar is the part of our own image that runs on workers: each of them fetches it, and the rest is ten times as large.
func Sidecar(b Binaries) (v1.Image, error) {
	return static(Config{Entrypoint: []string{"/usr/bin/hcp-sidecar"}}, Base(b.CABundle), sidecar(b))
}

// Kubernetes is the image of the bundle: one binary, called by the name of the component.
func Kubernetes(bundle string, caBundle []byte) (v1.Image, error) {
	files := []File{{Path: "/usr/bin/kube", Mode: 0o755, Source: bundle}}
	for _, n := range kubeNames {
		files = append(files, File{Path: "/usr/bin/" + n, Link: "kube"})
	}
	return static(Config{}, Base(caBundle), files)
}

// CoreDNS is the image of the DNS server.
func CoreDNS(b Binaries) (v1.Image, error) {
	return static(Config{Entrypoint: []string{"/usr/bin/coredns"}, User: "65534"},
		Base(b.CABundle), []File{{Path: "/usr/bin/coredns", Mode: 0o755, Source: b.CoreDNS}})
}

// LocalStorage is the image of the default storage class of hosted clusters.
func LocalStorage(b Binaries) (v1.Image, error) {
	return static(Config{Entrypoint: []string{"/usr/bin/local-storage"}},
		Base(b.CABundle), []File{{Path: "/usr/bin/local-storage", Mode: 0o755, Source: b.LocalStorage}})
}

// Karpenter is the image of Karpenter's core with machines of platform Local. binary is a path on this machine.
func Karpenter(binary string, caBundle []byte) (v1.Image, error) {
	return static(Config{Entrypoint: []string{"/usr/bin/hcp-karpenter"}}, Base(caBundle), []File{{Path: "/usr/bin/hcp-karpenter", Mode: 0o755, Source: binary}})
}

// Pause is the image of every pod's sandbox.
func Pause(b Binaries) (v1.Image, error) {
	return static(Config{Entrypoint: []string{"/pause"}, User: "65534"}, []File{{Path: "/pause", Mode: 0o755, Source: b.Pause}})
}

// Webapp is the application of the examples, in a version that it shows.
func Webapp(b Binaries, version string) (v1.Image, error) {
	return static(Config{Entrypoint: []string{"/webapp"}, User: "65534", Env: []string{"WEBAPP_VERSION=" + version}},
		[]File{{Path: "/webapp", Mode: 0o755, Source: b.Webapp}})
}

// static is assemble for images that hold no C library.
func static(cfg Config, sets ...[]File) (v1.Image, error) {
	if err := requireStatic(sets...); err != nil {
		return nil, err
	}
	return assemble(cfg, sets...)
}

func assemble(cfg Config, sets ...[]File) (v1.Image, error) {
	layers := make([]v1.Layer, 0, len(sets))
	for _, files := range sets {
		l, err := NewLayer(files...)
		if err != nil {
			return nil, fmt.Errorf("building a layer: %w", err)
		}
		layers = append(layers, l)
	}
	return New(cfg, layers...)
}
