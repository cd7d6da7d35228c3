package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const table = "# things.example.com  kind=Thing scope=Namespaced short=th categories=-\n" +
	"## v1 served=True storage=True subresources=status\n" +
	"# column\tAge\tdate\t.metadata.creationTimestamp\tpriority=0\n" +
	"spec\tobject\trequired\tcelRules=1\n" +
	"spec.names\t[]string\t-\tmaxItems=2 items:maxLength=3 pattern=\"^[^: ]*$\"\n" +
	"spec.size\tinteger\t-\tdefault=3 minimum=1 format=\"int32\" immutable\n"

const definitions = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  scope: Namespaced
  names: {kind: Thing, shortNames: [th]}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      additionalPrinterColumns: [{name: Age, type: date, jsonPath: .metadata.creationTimestamp}]
      schema:
        openAPIV3Schema:
          properties:
            metadata: {type: object}
            spec:
              type: object
              properties:
                names: {type: array, maxItems: 2, items: {type: string, maxLength: 3, pattern: "^[^: ]*$"}}
                size:
                  {type: integer, default: 3, minimum: 1, format: int32, x-kubernetes-validations: [{rule: self == oldSelf}]}
              x-kubernetes-validations: [{rule: has(self.size)}]
          required: [spec]
`

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		table, definitions, reasons string
		wantErr, wantOut            string
	}{
		"When both agree it should find nothing": {table: table, definitions: definitions, wantOut: "8 lines compared, 0 differences"},
		"When a default differs it should fail": {
			table: strings.Replace(table, "default=3", "default=4", 1), definitions: definitions,
			wantErr: "have no reason", wantOut: "spec.size\tdefault\twant 4, got 3\tNO REASON WRITTEN"},
		"When a rule went missing it should fail": {
			table: table, definitions: strings.Replace(definitions, "[{rule: has(self.size)}]", "[]", 1), wantErr: "have no reason", wantOut: "celRules\twant 1, got none"},
		"When a field is unknown to the table it should fail": {
			table: strings.Replace(table, "spec.names\t[]string\t-\tmaxItems=2 items:maxLength=3 pattern=\"^[^: ]*$\"\n", "", 1), definitions: definitions,
			wantErr: "have no reason", wantOut: "spec.names\tfield\twant none, got []string"},
		"When a difference has a reason it should pass and print it": {
			table: strings.Replace(table, "short=th", "short=x", 1), definitions: definitions,
			reasons: "*\tthings.example.com\t\tshort\tWe say so.\n", wantOut: "We say so."},
		"When a reason explains nothing it should fail": {
			table: table, definitions: definitions, reasons: "*\tthings.example.com\t\tshort\tWe say so.\n", wantErr: "explains nothing any more"},
		"When a line of the table is malformed it should fail and name the line": {
			table: table + "spec.more\tobject\n", definitions: definitions, wantErr: "t.tsv:7: want four columns"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, text := range map[string]string{"tables/t.tsv": tc.table, "crd/default/c.yaml": tc.definitions, "reasons": tc.reasons} {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			err := run(&out, filepath.Join(dir, "crd"), nil, filepath.Join(dir, "tables"), filepath.Join(dir, "reasons"))
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got error %v, want %q", err, tc.wantErr)
			}
			if !strings.Contains(out.String(), tc.wantOut) {
				t.Errorf("want %q in\n%s", tc.wantOut, out.String())
			}
		})
	}
}

func TestRunWithoutTables(t *testing.T) {
	err := run(&bytes.Buffer{}, "", nil, filepath.Join(t.TempDir(), "absent"), "")
	if err == nil || !strings.Contains(err.Error(), "there are no tables in") {
		t.Fatalf("want an error that says that the tables are absent, got %v", err)
	}
}
