// Package builds compiles what local mode runs from the checkout that the command is called in. Go's own cache decides
// what there is to do.
package builds

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Module is the path of the module whose checkout is needed.
const Module = "hcp.internal/platform"

// FindRoot looks for the checkout from dir upwards.
func FindRoot(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", dir, err)
	}
	for d := start; ; d = filepath.Dir(d) {
		data, err := os.ReadFile(filepath.Join(d, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module "+Module+"\n") {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("neither %s nor a folder above it is a checkout of this project, from which local mode builds its parts; change to the folder that holds go.mod of module %s, or name it with --root", start, Module)
		}
	}
}

// Target is what one run of the go command builds: a program, or several of one module that share most of their packages.
type Target struct {
	Name     string
	Dir      string // of the module, relative to the root
	Packages []string
	Out      string // relative to the root; with a slash at its end: a folder, for programs called as their packages are
	LDFlags  string
	ModFile  string // relative to Dir; empty: go.mod
	OS, Arch string // empty: this machine's
	// Typical is how long it takes on two processors with nothing in the caches.
	Typical time.Duration
}

const strip = "-s -w"

// Programs are our own four.
func Programs(root string) Target {
	ldflags := strip
	if commit := Commit(root); commit != "" {
		ldflags += " -X " + Module + "/internal/version.commit=" + commit
	}
	return Target{
		Name: "hypershift, hcp-operators, hcp-cloud, hcp-sidecar", Dir: ".", Packages: []string{"./cmd/hypershift", "./cmd/hcp-operators", "./cmd/hcp-cloud", "./cmd/hcp-sidecar"},
		Out: "bin/", LDFlags: ldflags, Typical: 160 * time.Second,
	}
}

// Flannel is the pod network of hosted clusters.
func Flannel() Target {
	return Target{Name: "flannel", Dir: "flannel", Packages: []string{"."}, Out: "bin/flannel", LDFlags: strip, Typical: 20 * time.Second}
}

// Platform are our own programs and the small ones that the cluster needs.
func Platform(root string) []Target {
	return []Target{
		Programs(root),
		// Their images must not change with each commit, so these know of none.
		{Name: "pause, webapp", Dir: ".", Packages: []string{"./cmd/pause", "./cmd/webapp"}, Out: "bin/", LDFlags: strip, Typical: 3 * time.Second},
		{Name: "coredns", Dir: "coredns", Packages: []string{"."}, Out: "bin/coredns", LDFlags: strip, Typical: time.Minute},
		Flannel(),
		{Name: "local-storage", Dir: "storage", Packages: []string{"."}, Out: "bin/local-storage", LDFlags: strip, Typical: time.Minute},
	}
}

// Commit is the commit that is checked out, abbreviated as everywhere; empty without git or a repository. A checkout that belongs to
// somebody else, as when root builds a user's, has a commit, too.
func Commit(root string) string {
	out, err := exec.Command("git", "-c", "safe.directory=*", "-C", root, "rev-parse", "--short=12", "HEAD").Output() //nolint:noctx // reads a file or two
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// Releases are the Kubernetes releases that can be built: version to module file in the folder kubernetes.
var Releases = map[string]string{
	"1.36.3": "go.mod",
	"1.35.4": "v1.35.mod",
}

// Kubernetes is the bundle of a release, e.g. "1.36.3".
func Kubernetes(version string) (Target, error) {
	modFile, ok := Releases[version]
	if !ok {
		return Target{}, fmt.Errorf("Kubernetes %s cannot be built here; the module files in the folder kubernetes are for: %s", version, strings.Join(KnownReleases(), ", "))
	}
	parts := strings.SplitN(version, ".", 3)
	const x = "-X k8s.io/component-base/version."
	return Target{
		Name: "kubernetes " + version, Dir: "kubernetes", Packages: []string{"."}, ModFile: modFile,
		Out: KubernetesBinary(version), Typical: 260 * time.Second,
		LDFlags: fmt.Sprintf("-s -w %[1]sgitVersion=v%[2]s %[1]sgitMajor=%[3]s %[1]sgitMinor=%[4]s", x, version, parts[0], parts[1]),
	}, nil
}

// KubernetesNode is what workers run of a release: kubelet and kube-proxy alone.
func KubernetesNode(version string) (Target, error) {
	t, err := Kubernetes(version)
	if err != nil {
		return Target{}, err
	}
	t.Name, t.Packages, t.Out, t.Typical = "kubelet and kube-proxy "+version, []string{"./node"}, KubernetesNodeBinary(version), 10*time.Second
	return t, nil
}

// Kubectl is kubectl of a release.
func Kubectl(version string) (Target, error) {
	t, err := Kubernetes(version)
	if err != nil {
		return Target{}, err
	}
	t.Name, t.Packages, t.Out, t.Typical = "kubectl "+version, []string{"./kubectl"}, "bin/kubectl", 20*time.Second
	return t, nil
}

// KubernetesNodeBinary is where that is, relative to the root.
func KubernetesNodeBinary(version string) string { return "bin/kubernetes/v" + version + "/node" }

// KubernetesBinary is where the bundle of a release is, relative to the root.
func KubernetesBinary(version string) string { return "bin/kubernetes/v" + version + "/kube" }

const (
	// ClusterAPIVersion is the version of Cluster API that is built here: that of the module file in the folder capi.
	ClusterAPIVersion = "v1.13.4"
	// KarpenterBinary is where Karpenter is, relative to the root, if somebody built it.
	KarpenterBinary = "bin/hcp-karpenter"
	// ClusterAPIManager is where its manager is, relative to the root.
	ClusterAPIManager = "bin/capi/" + ClusterAPIVersion + "/capi-manager"
)

// ClusterAPI is the stock manager of Cluster API.
func ClusterAPI() Target {
	const x = "-X sigs.k8s.io/cluster-api/version."
	return Target{
		Name: "cluster-api " + ClusterAPIVersion, Dir: "capi", Packages: []string{"sigs.k8s.io/cluster-api"}, Out: ClusterAPIManager,
		LDFlags: fmt.Sprintf("-s -w %[1]sgitVersion=%[2]s %[1]sgitMajor=1 %[1]sgitMinor=13", x, ClusterAPIVersion), Typical: 110 * time.Second,
	}
}

// Karpenter is Karpenter's core with machines of platform Local. Local releases have it if somebody built it, those of distributions always.
func Karpenter() Target {
	return Target{Name: "karpenter", Dir: "karpenter", Packages: []string{"./cmd/hcp-karpenter"}, Out: KarpenterBinary, LDFlags: strip, Typical: 3 * time.Minute}
}

// Clusterctl is Cluster API's own command line.
func Clusterctl() Target {
	t := ClusterAPI()
	t.Name, t.Packages, t.Out = "clusterctl "+ClusterAPIVersion, []string{"sigs.k8s.io/cluster-api/cmd/clusterctl"}, "bin/capi/"+ClusterAPIVersion+"/clusterctl"
	t.Typical = 15 * time.Second
	return t
}

const (
	// ProviderAWSVersion is the version of Cluster API's provider for AWS that is built here: that of the module file in the folder capa.
	ProviderAWSVersion = "v2.13.0"
	// ProviderAWSManager is where its manager is, relative to the root.
	ProviderAWSManager = "bin/capa/" + ProviderAWSVersion + "/capa-manager"
)

// ProviderAWS is the stock provider of Cluster API for AWS. Only tests against an emulated AWS run it.
func ProviderAWS() Target {
	const module = "sigs.k8s.io/cluster-api-provider-aws/v2"
	const x = "-X " + module + "/version."
	return Target{
		Name: "cluster-api-provider-aws " + ProviderAWSVersion, Dir: "capa", Packages: []string{module}, Out: ProviderAWSManager,
		LDFlags: fmt.Sprintf("-s -w %[1]sgitVersion=%[2]s %[1]sgitMajor=2 %[1]sgitMinor=13", x, ProviderAWSVersion), Typical: 4 * time.Minute,
	}
}

// There says whether the target's programs exist, of whichever state of the sources.
func (t Target) There(root string) bool {
	outs := []string{t.Out}
	if strings.HasSuffix(t.Out, "/") {
		outs = nil
		for _, pkg := range t.Packages {
			outs = append(outs, t.Out+path.Base(pkg))
		}
	}
	for _, out := range outs {
		if _, err := os.Stat(filepath.Join(root, out)); err != nil {
			return false
		}
	}
	return true
}

// KnownReleases lists the releases that can be built, oldest first.
func KnownReleases() []string { return []string{"1.35.4", "1.36.3"} }
