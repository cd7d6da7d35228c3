package render

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", os.Getenv("UPDATE") == "true", "rewrite the golden files")

// golden are the control planes whose objects are compared with testdata/golden/<name>, by the flags that they are rendered with. Their inputs
// are in testdata/input.
var golden = map[string][]string{
	"local-single-replica":   {"--no-defaults", "--all", "--infra-status", "testdata/input/infra.yaml"},
	"local-highly-available": {"--no-defaults", "--all", "--infra-status", "testdata/input/infra.yaml"},
	"local-private-capi":     {"--no-defaults", "--all", "--infra-status", "testdata/input/infra.yaml"},
	"local-etcd-shards":      {"--no-defaults", "--all", "--infra-status", "testdata/input/infra.yaml"},
	"none-nodeport":          {"--no-defaults", "--all", "--infra-status", "testdata/input/infra-without-tunnel.yaml"},
	// From a HostedCluster, with the API's defaults, and as far as one pass gets once the API server has rolled out.
	"local-hosted-cluster": {"--with-status", "--objects", "testdata/ready.yaml", "--infra-status", "testdata/input/infra.yaml"},
}

// TestRenderedGolden is the golden test of all components: what the control-plane-operator makes of a control plane, and what the hypershift-operator
// deploys for it.
func TestRenderedGolden(t *testing.T) {
	for name, value := range map[string]string{"DEFAULT_INGRESS_DOMAIN": "apps.example.com", "MANAGED_SERVICE": "", "ENABLE_SIZE_TAGGING": "", "HYPERSHIFT_FEATURESET": "",
		"CERT_ROTATION_SCALE": ""} { // count as input
		t.Setenv(name, value)
	}
	for name, flags := range golden {
		t.Run("When a control plane is "+name+" it should consist of these objects", func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			for _, operator := range []string{controlPlaneOperator, hypershiftOperator} {
				args := append([]string{"--operator", operator, "--no-signing", "--output-dir", dir, "--overwrite"}, flags...)
				if operator == hypershiftOperator { // which deploys nothing that waits for others
					args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--all" })
				}
				args = append(args, "-f", "testdata/input/"+name+".yaml", "--release-metadata", "testdata/input/release.json", "--objects", "testdata/input/objects.yaml", "--native-sidecars", "--default-security-context-uid", "10042")
				if _, said, err := run(t, "", args...); err != nil {
					t.Fatalf("%s: %v\n%s", operator, err, said)
				}
			}
			compare(t, filepath.Join("testdata", "golden", name), files(t, dir))
		})
	}
}

// compare looks for each file of got below root, and for no others; or writes them there.
func compare(t *testing.T, root string, got map[string]string) {
	t.Helper()
	if *update {
		if err := os.RemoveAll(root); err != nil {
			t.Fatal(err)
		}
		for path, content := range got {
			path = filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	want := files(t, root)
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if diff := cmp.Diff(want[path], got[path]); diff != "" {
			t.Errorf("%s differs (-want +got); run the test with UPDATE=true if that is meant:\n%s", filepath.Join(root, path), diff)
		}
		delete(want, path)
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		t.Errorf("%s is rendered no more; run the test with UPDATE=true to remove the file", filepath.Join(root, path))
	}
}
