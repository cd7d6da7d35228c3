package support_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/support"
)

// notRun is what an example says of itself when not all of it has an effect here.
const notRun = "# Not all of it has an effect here: see docs/reference/support.md."

func TestExamplesSayWhatHasNoEffect(t *testing.T) {
	files, err := filepath.Glob("../../config/examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../../config/examples/techpreview/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	for _, f := range append(files, more...) {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lacking := ""
		for _, doc := range bytes.Split(raw, []byte("\n---")) {
			obj := map[string]any{}
			if err := yaml.Unmarshal(doc, &obj); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			if what := withoutEffect(obj); what != "" {
				lacking = what
			}
		}
		switch says := strings.Contains(string(raw), notRun); {
		case lacking != "" && !says:
			t.Errorf("%s: %s; say in its first lines: %s", f, lacking, notRun)
		case lacking == "" && says:
			t.Errorf("%s: everything in it has an effect, and it says otherwise", f)
		}
	}
}

// withoutEffect names something of an object that has no effect, or nothing.
func withoutEffect(obj map[string]any) string {
	kind, _ := obj["kind"].(string)
	version, _ := obj["apiVersion"].(string)
	for _, k := range support.Kinds {
		if k.Kind == kind && strings.HasPrefix(version, k.Group+"/") && k.Verdict == support.NotHeeded {
			return "kind " + kind
		}
	}
	table := support.Of(kind)
	spec, ok := obj["spec"].(map[string]any)
	if table == nil || !ok {
		return ""
	}
	if release, _ := spec["release"].(map[string]any); strings.Contains(release["image"].(string), "ocp-release") {
		return "a release of OpenShift"
	}
	platform, _ := spec["platform"].(map[string]any)
	name, _ := platform["type"].(string)
	if found := table.Findings(spec, name); len(found) > 0 {
		return found[0].Field
	}
	return ""
}
