package testenv

import (
	"os"
	"path/filepath"
	"runtime"
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

// moduleRoot is the folder of the repository, found from this file's place in it.
func moduleRoot() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}
