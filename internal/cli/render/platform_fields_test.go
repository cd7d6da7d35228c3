package render

import (
	"encoding/json"
	"strings"
	"testing"

	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/support/supporttest"
)

// byName are entries of the table whose test knows single fields alone; each field below them is changed here.
var byName = []string{
	"spec.platform.aws.rolesRef.imageRegistryARN", "spec.platform.aws.rolesRef.ingressARN", "spec.platform.azure.azureAuthenticationConfig", "spec.platform.powervs",
	"spec.platform.kubevirt.storageDriver",
}

// TestPlatformFieldsOfPayload changes each field of credentials and settings that components, or objects in the hosted cluster, take from the platform.
func TestPlatformFieldsOfPayload(t *testing.T) {
	const root = "testdata/openshift"
	var doc map[string]any
	if err := json.Unmarshal(patched(t, root, "aro"), &doc); err != nil {
		t.Fatal(err)
	}
	bases := map[string]map[string]any{"aro": asHostedCluster(doc["spec"].(map[string]any))}
	doc = nil
	if err := json.Unmarshal(patched(t, root, "plain"), &doc); err != nil {
		t.Fatal(err)
	}
	plain := asHostedCluster(doc["spec"].(map[string]any))
	bases["plain"] = plain
	for name, more := range moreBases(t) {
		if _, ok := more["platform"]; ok {
			base := clone(t, plain)
			base["platform"] = more["platform"]
			bases[name] = base
		}
	}
	p := newPayloadRenderer(t, root)
	before := map[string]string{}
	for name, base := range bases {
		text, ok := p.render(clone(t, base))
		if !ok {
			t.Fatalf("base %s is no spec", name)
		}
		before[name] = text
	}
	for _, leaf := range supporttest.Leaves(t, "HostedCluster") {
		if e, _ := support.Of("HostedCluster").Lookup(leaf.Path, ""); !isByName(e.Path) {
			continue
		}
		t.Run("When "+leaf.Path+" changes something of what is made should", func(t *testing.T) {
			for name, base := range bases {
				if !of(base, leaf.Path) {
					continue
				}
				for _, value := range supporttest.Candidates(leaf) {
					spec := clone(t, base)
					supporttest.Set(spec, leaf.Path, value)
					if text, ok := p.render(spec); ok && text != before[name] {
						return
					}
				}
			}
			t.Errorf("nothing changes with %s", leaf.Path)
		})
	}
}

func isByName(entry string) bool {
	for _, path := range byName {
		if entry == path {
			return true
		}
	}
	return false
}

// of tells whether a base is of the platform that a field is of.
func of(base map[string]any, path string) bool {
	settings, _ := base["platform"].(map[string]any)
	_, ok := settings[strings.Split(path, ".")[2]]
	return ok
}

func clone(t *testing.T, spec map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
