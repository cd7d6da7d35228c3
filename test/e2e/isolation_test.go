//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// private is the suffix of the groups in which the hosted cluster's objects of Cluster API are stored.
const private = ".cluster.hypershift.openshift.io"

// platformComesAndGoes has somebody else install, break and delete Cluster API's standard definitions beside the hosted cluster.
func platformComesAndGoes(t *testing.T) {
	m := management()
	if got := m.run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", `jsonpath={.status.conditions[?(@.type=='PrivateCAPITypes')].status}`); got != "True" {
		t.Fatalf("PrivateCAPITypes is %q, want True", got)
	}
	file, names := standardDefinitions(t)
	for _, name := range names {
		if out, err := m.try(t, "get", "crd", name); err == nil {
			t.Fatalf("an installation with private types has %s: %s", name, out)
		}
	}
	before := whoIsWho(t)
	eventually(t, settle, "a settled cluster", func() error {
		last := before
		before = whoIsWho(t)
		if moved := difference(last, before); len(moved) > 0 {
			return errMoved(moved)
		}
		return nil
	})
	still := func(what string) {
		t.Helper()
		now := whoIsWho(t)
		if moved := append(difference(before, now), difference(now, before)...); len(moved) > 0 {
			t.Errorf("%s moved %s", what, strings.Join(moved, ", "))
		}
		eventually(t, time.Minute, "ready workers", func() error {
			ready, err := hosted().try(t, "get", "nodes", "-o", "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}")
			if err != nil || ready != "True True" {
				return errors.Join(fmt.Errorf("Ready of the workers is %q, want True True", ready), err)
			}
			return nil
		})
	}
	m.run(t, "create", "-f", file)
	for _, name := range names {
		m.run(t, "wait", "--for=condition=Established", "--timeout=50s", "crd/"+name)
	}
	m.applyYAML(t, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: platform, namespace: clusters-demo, annotations: {hypershift.openshift.io/cluster: clusters/demo}}
spec: {infrastructureRef: {apiGroup: example.com, kind: Foreign, name: x}}
`)
	still("installing the platform's Cluster API")
	for _, name := range names {
		m.run(t, "patch", "crd", name, "--type=merge", "-p",
			`{"spec":{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://127.0.0.1:1/convert"},"conversionReviewVersions":["v1"]}}}}`)
	}
	still("breaking the platform's Cluster API")
	// The API server deletes a definition's objects by the way in which it serves them, and tries again ever later when that fails.
	for _, name := range names {
		m.run(t, "patch", "crd", name, "--type=merge", "-p", `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
	}
	m.run(t, append([]string{"delete", "crd", "--wait=false"}, names...)...)
	eventually(t, 4*time.Minute, "the end of the standard definitions", func() error {
		left, err := m.try(t, append([]string{"get", "crd", "-o", "name", "--ignore-not-found"}, names...)...)
		if err != nil || strings.TrimSpace(left) != "" {
			return errors.Join(fmt.Errorf("there are still %q", left), err)
		}
		return nil
	})
	still("deleting the platform's Cluster API")
	// Everything that reads objects of Cluster API has to find them from the start, too.
	for _, d := range []string{"cluster-api", "capi-provider"} {
		m.run(t, "rollout", "restart", "-n", "clusters-demo", "deployment/"+d)
		eventually(t, 2*time.Minute, d, func() error {
			_, err := m.try(t, "rollout", "status", "-n", "clusters-demo", "deployment/"+d, "--timeout=10s")
			return err
		})
	}
	still("starting Cluster API's programs again")
}

// standardDefinitions writes the definitions of an installation with standard types to a file.
func standardDefinitions(t *testing.T) (file string, names []string) {
	t.Helper()
	var list struct {
		Items []map[string]any
	}
	out := run(t, time.Minute, "hypershift", "install", "render", "--outputs", "crds", "--private-capi-types=false", "--disable-capi-conversion-webhook", "--format", "json")
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	var items []map[string]any
	for _, item := range list.Items {
		name := item["metadata"].(map[string]any)["name"].(string)
		if strings.HasSuffix(name, "cluster.x-k8s.io") {
			items, names = append(items, item), append(names, name)
		}
	}
	if len(names) < 12 {
		t.Fatalf("only %d standard definitions: %v", len(names), names)
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	file = filepath.Join(t.TempDir(), "definitions.json")
	if err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file, names
}

// whoIsWho tells whether a machine, or a pod that is one, was replaced or told to change. Cluster API's own programs are left out.
func whoIsWho(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	kinds := []string{"hostedclusters", "hostedcontrolplanes", "nodepools", "statefulsets", "deployments"}
	for _, k := range []string{"clusters", "machinedeployments", "machinesets", "machines"} {
		kinds = append(kinds, k+private)
	}
	for _, k := range []string{"localclusters", "localmachines"} {
		kinds = append(kinds, k+".infrastructure"+private)
	}
	var list struct {
		Items []struct {
			Kind     string
			Metadata struct {
				Namespace, Name, UID, DeletionTimestamp string
				Generation                              int64
			}
		}
	}
	if err := json.Unmarshal([]byte(management().run(t, "get", strings.Join(kinds, ","), "-A", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		if item.Kind == "Deployment" && (item.Metadata.Name == "cluster-api" || item.Metadata.Name == "capi-provider") {
			continue // told to start again at the end
		}
		if item.Kind == "MachineSet" {
			item.Metadata.Generation = 0 // Cluster API's own notes on it count
		}
		found[item.Kind+" "+item.Metadata.Namespace+"/"+item.Metadata.Name] = fmt.Sprint(item.Metadata.UID, item.Metadata.Generation, item.Metadata.DeletionTimestamp)
	}
	for _, line := range strings.Fields(hosted().run(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.uid}{"\n"}{end}`)) {
		name, uid, _ := strings.Cut(line, "=")
		found["Node "+name] = uid
	}
	return found
}

type errMoved []string

func (e errMoved) Error() string { return "still moving: " + strings.Join(e, ", ") }

// difference names what is new or other than before.
func difference(before, after map[string]string) []string {
	var moved []string
	for name, version := range after {
		if before[name] != version {
			moved = append(moved, name)
		}
	}
	return moved
}
