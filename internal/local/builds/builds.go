// Package builds compiles what local mode runs from the checkout that the command is called in. Go's own cache decides
// what there is to do.
package builds

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// Target is one program.
type Target struct {
	Name    string
	Dir     string // of the module, relative to the root
	Package string
	Out     string // relative to the root
	LDFlags string
	ModFile string // relative to Dir; empty: go.mod
}

// Platform are our own programs and the small ones that the cluster needs.
func Platform() []Target {
	const strip = "-s -w"
	return []Target{
		{Name: "hypershift", Dir: ".", Package: "./cmd/hypershift", Out: "bin/hypershift", LDFlags: strip},
		{Name: "hcp-operators", Dir: ".", Package: "./cmd/hcp-operators", Out: "bin/hcp-operators", LDFlags: strip},
		{Name: "hcp-sidecar", Dir: ".", Package: "./cmd/hcp-sidecar", Out: "bin/hcp-sidecar", LDFlags: strip},
		{Name: "pause", Dir: ".", Package: "./cmd/pause", Out: "bin/pause", LDFlags: strip},
		{Name: "webapp", Dir: ".", Package: "./cmd/webapp", Out: "bin/webapp", LDFlags: strip},
		{Name: "coredns", Dir: "coredns", Package: ".", Out: "bin/coredns", LDFlags: strip},
		{Name: "flannel", Dir: "flannel", Package: ".", Out: "bin/flannel", LDFlags: strip},
		{Name: "local-storage", Dir: "storage", Package: ".", Out: "bin/local-storage", LDFlags: strip},
	}
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
		Name: "kubernetes " + version, Dir: "kubernetes", Package: ".", ModFile: modFile,
		Out:     KubernetesBinary(version),
		LDFlags: fmt.Sprintf("-s -w %[1]sgitVersion=v%[2]s %[1]sgitMajor=%[3]s %[1]sgitMinor=%[4]s", x, version, parts[0], parts[1]),
	}, nil
}

// KubernetesNode is what workers run of a release: kubelet and kube-proxy alone.
func KubernetesNode(version string) (Target, error) {
	t, err := Kubernetes(version)
	if err != nil {
		return Target{}, err
	}
	t.Name, t.Package, t.Out = "kubelet and kube-proxy "+version, "./node", KubernetesNodeBinary(version)
	return t, nil
}

// KubernetesNodeBinary is where that is, relative to the root.
func KubernetesNodeBinary(version string) string { return "bin/kubernetes/v" + version + "/node" }

// KubernetesBinary is where the bundle of a release is, relative to the root.
func KubernetesBinary(version string) string { return "bin/kubernetes/v" + version + "/kube" }

const (
	// ClusterAPIVersion is the version of Cluster API that is built here: that of the module file in the folder capi.
	ClusterAPIVersion = "v1.13.4"
	// ClusterAPIManager is where its manager is, relative to the root.
	ClusterAPIManager = "bin/capi/" + ClusterAPIVersion + "/capi-manager"
)

// ClusterAPI is the stock manager of Cluster API.
func ClusterAPI() Target {
	const x = "-X sigs.k8s.io/cluster-api/version."
	return Target{
		Name: "cluster-api " + ClusterAPIVersion, Dir: "capi", Package: "sigs.k8s.io/cluster-api", Out: ClusterAPIManager,
		LDFlags: fmt.Sprintf("-s -w %[1]sgitVersion=%[2]s %[1]sgitMajor=1 %[1]sgitMinor=13", x, ClusterAPIVersion),
	}
}

// maxErrorOutput bounds how much of the compiler's output goes into an error.
const maxErrorOutput = 4000

// Build compiles a target. say is told how many packages have been compiled.
func Build(ctx context.Context, root string, t Target, say func(format string, args ...any)) error {
	out := filepath.Join(root, t.Out)
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return fmt.Errorf("creating the folder of %s: %w", t.Out, err)
	}
	// Without -buildvcs=false a checkout that belongs to somebody else does not build, and any edit makes every program another one.
	args := []string{"build", "-v", "-buildvcs=false", "-trimpath", "-ldflags", t.LDFlags, "-o", out}
	if t.ModFile != "" && t.ModFile != "go.mod" {
		args = append(args, "-modfile", t.ModFile)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, t.Package)...)
	cmd.Dir = filepath.Join(root, t.Dir)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("building %s: %w", t.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("building %s: %w; install Go 1.26 or newer, see https://go.dev/dl", t.Name, err)
	}
	tail := follow(stderr, t.Name, say)
	if err := cmd.Wait(); err != nil {
		return errors.Join(fmt.Errorf("building %s: %w: %s", t.Name, err, strings.TrimSpace(tail)), ctx.Err())
	}
	return nil
}

// follow counts the lines with package names and returns the end of the others.
func follow(r io.Reader, name string, say func(format string, args ...any)) string {
	var tail bytes.Buffer
	packages := 0
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if line != "" && !strings.ContainsAny(line, " :#\t") {
			packages++
			if packages%25 == 1 {
				say("%s: compiling, %d packages so far", name, packages)
			}
			continue
		}
		tail.WriteString(line + "\n")
		if tail.Len() > maxErrorOutput {
			tail.Next(tail.Len() - maxErrorOutput)
		}
	}
	return tail.String()
}

// KnownReleases lists the releases that can be built, oldest first.
func KnownReleases() []string { return []string{"1.35.4", "1.36.3"} }
