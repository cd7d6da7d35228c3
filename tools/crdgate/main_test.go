package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const header = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  versions:
    - schema:
        openAPIV3Schema:
`

const gated = header + `          description: A kind.
          properties:
            spec:
              properties:
                plain: {type: string}
                fancy: {type: string, description: It is new (TechPreview).}
                platform:
                  properties:
                    type: {type: string, enum: [None, OpenStack, GCP]}
              x-kubernetes-validations:
                - rule: has(self.plain)
                - rule: "!has(oldSelf.fancy) || has(self.fancy)"
`

func TestSplit(t *testing.T) {
	for name, tc := range map[string]struct {
		in      string
		deflt   []string // what the default set must hold
		without []string // what it must not hold
	}{
		"When nothing is a preview it should be in both sets": {
			in: header + "          description: A kind.\n", deflt: []string{"A kind."},
		},
		"When a kind is a preview it should stay out of the default set": {
			in: header + "          description: A kind (TechPreview).\n",
		},
		"When a field is a preview it should go with its rules and its values": {
			in:      gated,
			deflt:   []string{"plain", "has(self.plain)", "None"},
			without: []string{"fancy", "OpenStack", "GCP"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, set := range []string{"default", "techpreview"} {
				if err := os.Mkdir(filepath.Join(dir, set), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			preview, deflt := filepath.Join(dir, "techpreview", "a.yaml"), filepath.Join(dir, "default", "a.yaml")
			if err := os.WriteFile(preview, []byte(tc.in), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := split(dir); err != nil {
				t.Fatal(err)
			}
			if kept, err := os.ReadFile(preview); err != nil || string(kept) != tc.in {
				t.Errorf("want the set with previews as it was, got %v\n%s", err, kept)
			}
			got, err := os.ReadFile(deflt)
			if (err == nil) != (len(tc.deflt) > 0) {
				t.Fatalf("reading the default set: %v", err)
			}
			for _, s := range tc.deflt {
				if !strings.Contains(string(got), s) {
					t.Errorf("the default set lacks %q:\n%s", s, got)
				}
			}
			for _, s := range tc.without {
				if strings.Contains(string(got), s) {
					t.Errorf("the default set holds %q:\n%s", s, got)
				}
			}
		})
	}
}
