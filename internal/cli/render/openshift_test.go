package render

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"sigs.k8s.io/yaml"
)

// scenarios are control planes of OpenShift payloads. Each is testdata/openshift/scenarios/<name>.yaml, a merge patch of plain.yaml.
var scenarios = []string{"plain", "tech-preview", "modern-tls", "ibmcloud", "gcp", "aro"}

// TestRenderedOpenShift is the golden test of the components of OpenShift payloads. What the scenario plain consists of is in testdata/openshift/golden/plain;
// of the others only what differs from it: files with other content, and gone.txt with those that are not there.
func TestRenderedOpenShift(t *testing.T) {
	for name, value := range map[string]string{"MANAGED_SERVICE": "", "CERT_ROTATION_SCALE": "", "DEFAULT_INGRESS_DOMAIN": "", "ENABLE_SIZE_TAGGING": "", "HYPERSHIFT_FEATURESET": "", "RHOBS_MONITORING": "",
		"ENABLE_CVO_MANAGEMENT_CLUSTER_METRICS_ACCESS": "", "ARO_HCP_KEY_VAULT_USER_CLIENT_ID": "11111111-0000-0000-0000-000000000000"} {
		t.Setenv(name, value)
	}
	const root = "testdata/openshift"
	plain := map[string]string{}
	for _, name := range scenarios {
		t.Run("When a control plane is "+name+" it should consist of these objects", func(t *testing.T) {
			if name == "aro" {
				t.Setenv("MANAGED_SERVICE", "ARO-HCP")
			}
			got := renderScenario(t, root, name)
			if name == "plain" {
				plain = maps.Clone(got)
			} else {
				got = differing(plain, got)
			}
			if len(got) == 0 {
				got["gone.txt"] = "" // no difference
			}
			compare(t, filepath.Join(root, "golden", name), got)
		})
	}
}

func renderScenario(t *testing.T, root, name string) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hcp.yaml")
	if err := os.WriteFile(file, patched(t, root, name), 0o600); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, operator := range []string{controlPlaneOperator, hypershiftOperator, karpenterOperator} {
		dir := filepath.Join(t.TempDir(), operator)
		_, said, err := run(t, "", "--no-signing", "--no-defaults", "--all", "--placeholder-images", "--management-capabilities", "all", "--with-status", "--output-dir", dir, "--operator", operator,
			"-f", file, "--release-metadata", filepath.Join(root, "release.json"), "--objects", filepath.Join(root, "objects.yaml"), "--infra-status", filepath.Join(root, "infra.yaml"))
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		for path, content := range files(t, dir) {
			got[path] = configHash.ReplaceAllString(content, "${1}…")
		}
	}
	return got
}

// configHash changes with each ConfigMap, which is compared itself.
var configHash = regexp.MustCompile(`(component.hypershift.openshift.io/config-hash: )\S+`)

// patched is the HostedControlPlane of a scenario.
func patched(t *testing.T, root, name string) []byte {
	t.Helper()
	read := func(name string) []byte {
		raw, err := os.ReadFile(filepath.Join(root, "scenarios", name+".yaml"))
		if err == nil {
			raw, err = yaml.YAMLToJSON(raw)
		}
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	doc := read("plain")
	if name != "plain" {
		var err error
		if doc, err = jsonpatch.MergePatch(doc, read(name)); err != nil {
			t.Fatal(err)
		}
	}
	if !json.Valid(doc) {
		t.Fatalf("scenario %s is no JSON", name)
	}
	return doc
}

// differing are the files that plain does not have like this, and gone.txt, which names those that it has alone.
func differing(plain, got map[string]string) map[string]string {
	out := map[string]string{}
	for path, content := range got {
		if plain[path] != content {
			out[path] = content
		}
	}
	var gone []string
	for _, path := range slices.Sorted(maps.Keys(plain)) {
		if _, ok := got[path]; !ok {
			gone = append(gone, path+"\n")
		}
	}
	if len(gone) > 0 {
		out["gone.txt"] = strings.Join(gone, "")
	}
	return out
}
