package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  scope: Namespaced
  names: {kind: Thing, shortNames: [th, ths], categories: [all]}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      additionalPrinterColumns: [{name: Age, type: date, jsonPath: .metadata.creationTimestamp}]
      schema:
        openAPIV3Schema:
          properties:
            spec:
              type: object
              required: [size]
              properties:
                size: {type: integer, default: 3, minimum: 1, maximum: 9}
                color: {type: string, enum: [red, blue], maxLength: 4}
                names: {type: array, x-kubernetes-list-type: set, items: {type: string, maxLength: 3}}
                extra: {type: object, x-kubernetes-preserve-unknown-fields: true, nullable: true}
              x-kubernetes-validations: [{rule: has(self.size)}]
`

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct{ from, to, allowed, wantErr string }{
		"When nothing changed it should pass":                        {},
		"When a field is gone it should fail":                        {from: "                color: {type: string, enum: [red, blue], maxLength: 4}\n", wantErr: "spec.color: the field is gone"},
		"When a type changed it should fail":                         {from: "size: {type: integer", to: "size: {type: string", wantErr: `the type was "integer" and is "string"`},
		"When a default is gone it should fail":                      {from: "default: 3, ", wantErr: "spec.size: the default 3 is gone"},
		"When a default changed it should fail":                      {from: "default: 3", to: "default: 4", wantErr: "the default was 3 and is 4"},
		"When a field is required now it should fail":                {from: "required: [size]", to: "required: [size, color]", wantErr: "spec.color: the field is required now"},
		"When a new field is required it should fail":                {from: "required: [size]\n              properties:\n", to: "required: [size, new]\n              properties:\n                new: {type: string}\n", wantErr: "spec.new: the new field is required"},
		"When a new field is optional it should pass":                {from: "properties:\n                size", to: "properties:\n                new: {type: string}\n                size"},
		"When an enum lost a value it should fail":                   {from: "[red, blue]", to: "[red, green]", wantErr: `the enum lost ["blue"]`},
		"When an enum got a value it should pass":                    {from: "[red, blue]", to: "[red, blue, green]"},
		"When a lower bound rises it should fail":                    {from: "minimum: 1", to: "minimum: 2", wantErr: "minimum was 1 and is 2"},
		"When a lower bound sinks it should pass":                    {from: "minimum: 1", to: "minimum: 0"},
		"When an upper bound sinks it should fail":                   {from: "maximum: 9", to: "maximum: 8", wantErr: "maximum was 9 and is 8"},
		"When an upper bound is new it should fail":                  {from: "list-type: set, items", to: "list-type: set, maxItems: 2, items", wantErr: "maxItems was not there and is 2"},
		"When a bound of items sinks it should fail":                 {from: "items: {type: string, maxLength: 3}", to: "items: {type: string, maxLength: 2}", wantErr: "maxLength was 3 and is 2"},
		"When a pattern is new it should fail":                       {from: "maxLength: 4", to: "maxLength: 4, pattern: r", wantErr: `pattern was not there and is "r"`},
		"When a list merges otherwise it should fail":                {from: "x-kubernetes-list-type: set, ", wantErr: `list-type was "set" and is "atomic"`},
		"When unknown fields are dropped it should fail":             {from: "x-kubernetes-preserve-unknown-fields: true, ", wantErr: "preserve-unknown-fields is gone"},
		"When null is refused it should fail":                        {from: ", nullable: true", wantErr: "nullable is gone"},
		"When a rule is new it should fail":                          {from: "[{rule: has(self.size)}]", to: "[{rule: has(self.size)}, {rule: self.size > 2}]", wantErr: `["self.size > 2"]`},
		"When a rule is gone it should pass":                         {from: "[{rule: has(self.size)}]", to: "[]"},
		"When a new rule leaves stored objects alone it should pass": {from: "[{rule: has(self.size)}]", to: "[{rule: has(self.size)}, {rule: self.size == oldSelf.size}]"},
		"When a short name is gone it should fail":                   {from: "[th, ths]", to: "[ths]", wantErr: "short lost th"},
		"When a category is gone it should fail":                     {from: "categories: [all]", to: "categories: []", wantErr: "categories lost all"},
		"When a subresource is gone it should fail":                  {from: "subresources: {status: {}}", to: "subresources: {}", wantErr: "subresources lost status"},
		"When a column is gone it should fail":                       {from: "name: Age, ", to: "name: Old, ", wantErr: "the column"},
		"When a version is not served it should fail":                {from: "served: true", to: "served: false", wantErr: "served was True and is False"},
		"When a kind is gone it should fail":                         {from: "name: things.example.com", to: "name: others.example.com", wantErr: "the kind is gone"},
		"When what is stricter is allowed it should pass": {from: "maximum: 9", to: "maximum: 8",
			allowed: "default\tthings.example.com\tspec.size\tmaximum\tNobody could use 9.\n"},
		"When what is allowed does not happen it should fail": {allowed: "default\tthings.example.com\tspec.size\tmaximum\tNobody could use 9.\n", wantErr: "what is allowed does not happen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(definition, tc.from) {
				t.Fatalf("the definition does not hold %q", tc.from)
			}
			dir := t.TempDir()
			write(t, filepath.Join(dir, "old", "c.yaml"), definition)
			write(t, filepath.Join(dir, "new", "c.yaml"), strings.Replace(definition, tc.from, tc.to, 1))
			write(t, filepath.Join(dir, "allowed"), tc.allowed)
			baseline := filepath.Join(dir, "baseline")
			if err := run(&bytes.Buffer{}, true, baseline, "", []string{"default=" + filepath.Join(dir, "old")}); err != nil {
				t.Fatal(err)
			}
			err := run(&bytes.Buffer{}, false, baseline, filepath.Join(dir, "allowed"), []string{"default=" + filepath.Join(dir, "new")})
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got error %v, want %q", err, tc.wantErr)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
