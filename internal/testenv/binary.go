package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

// KubernetesVersion is the bundled release that tests run against.
const KubernetesVersion = "v1.36.3"

// BinaryEnv names the environment variable that points at another kube bundle binary.
const BinaryEnv = "KUBE_BUNDLE"

// KubeBinary returns the path of the bundled Kubernetes binary, which runs the program that its argv[0] names.
// It fails the test, with the command that builds it, when there is none: a skipped test would hide the gap.
func KubeBinary(t testing.TB) string {
	t.Helper()
	path := os.Getenv(BinaryEnv)
	if path == "" {
		path = filepath.Join(moduleRoot(), "bin", "kubernetes", KubernetesVersion, "kube")
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no Kubernetes bundle at %s: run `make kubernetes` first, or set %s", path, BinaryEnv)
	}
	return path
}

// began is the folder that this process began in; go test begins in that of the package.
var began, _ = os.Getwd()

// moduleRoot is the folder of the repository: the one with a go.mod above the folder that the test began in. What is compiled into the test doesn't
// tell, with -trimpath.
func moduleRoot() string {
	for dir := began; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
	}
}
