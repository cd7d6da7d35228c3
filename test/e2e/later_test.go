//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// laterPackage is a HostedClusterPackage over the demo cluster.
	laterPackage = "later-hello"
	// rollTime is how long two workers may take to be replaced one after the other, on a busy machine.
	rollTime = 6 * time.Minute
)

// muchLater does to the demo cluster what happens to clusters over the months: a package for the fleet comes and changes, workers are replaced by
// others, the release image becomes another. It is the same version: an older one would have to be built first, which takes longer than all of
// this; make e2e-upgrade has a real upgrade.
func muchLater(t *testing.T) {
	m := management()
	m.run(t, "label", "hostedcluster", "-n", "clusters", "demo", "--overwrite", "fleet=later")
	for _, tag := range []string{"1.0.0", "2.0.0"} {
		file := filepath.Join(stateDir, "later-"+tag+".yaml")
		text := fmt.Sprintf(`apiVersion: package-operator.run/v1alpha1
kind: HostedClusterPackage
metadata: {name: %s}
spec:
  hostedClusterSelector: {matchLabels: {fleet: later}}
  strategy: {rollingUpgrade: {maxUnavailable: 1}}
  template:
    spec:
      image: 10.244.0.1:5000/examples/hello:1.0.0
      config: {image: "10.244.0.1:5000/hypershift/webapp", tag: %q}
`, laterPackage, tag)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m.run(t, "apply", "-f", file)
		run(t, 5*time.Minute, "kubectl-package", "rollout", "status", "hostedclusterpackage/"+laterPackage, "--timeout", "4m", kubeconfigFlag())
	}
	before := strings.Fields(hosted().run(t, "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
	m.applyYAML(t, laterConfig)
	m.run(t, "patch", "nodepool", "-n", "clusters", "demo", "--type=merge", "-p", `{"spec":{"config":[{"name":"later"}]}}`)
	sameVersion(t)
	eventually(t, rollTime, "other workers", func() error {
		now, err := hosted().try(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}`)
		nodes := strings.Fields(now)
		old := slices.ContainsFunc(nodes, func(node string) bool {
			name, _, _ := strings.Cut(node, "=")
			return slices.Contains(before, name) || !strings.HasSuffix(node, "=True")
		})
		if err != nil || old || len(nodes) != len(before) {
			return errors.Join(fmt.Errorf("nodes are %v, %d others than %v are wanted, Ready", nodes, len(before), before), err)
		}
		return nil
	})
	workersReady(t)
}

const laterConfig = `
apiVersion: v1
kind: ConfigMap
metadata: {name: later, namespace: clusters}
data:
  config: |
    apiVersion: machineconfiguration.openshift.io/v1
    kind: MachineConfig
    metadata: {name: 99-later}
    spec:
      config:
        ignition: {version: 3.2.0}
        storage:
          files:
          - {path: /etc/later, mode: 420, contents: {source: "data:,later"}}
`

// sameVersion changes the release image to its digest, and waits until the control plane has rolled.
func sameVersion(t *testing.T) {
	t.Helper()
	m := management()
	image := m.run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", "jsonpath={.spec.release.image}")
	repository, tag, ok := strings.Cut(strings.TrimPrefix(image, nodeRegistry), ":")
	if !ok {
		t.Fatalf("the release image %s has no tag", image)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodHead, "http://"+nodeRegistry+"v2/"+repository+"/manifests/"+tag, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	digest := resp.Header.Get("Docker-Content-Digest")
	if digest == "" {
		t.Fatalf("the registry says %s and no digest of %s", resp.Status, image)
	}
	want := nodeRegistry + repository + "@" + digest
	m.run(t, "patch", "hostedcluster", "-n", "clusters", "demo", "--type=merge", "-p", `{"spec":{"release":{"image":"`+want+`"}}}`)
	eventually(t, rollTime, "the same release by its digest", func() error {
		got, err := m.try(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o",
			`jsonpath={.status.version.desired.image} {.status.version.history[0].state} {.status.conditions[?(@.type=="Progressing")].status}`)
		if err != nil || got != want+" Completed False" {
			return errors.Join(fmt.Errorf("image, state and Progressing are %q, want %s Completed False", got, want), err)
		}
		return nil
	})
}

// nodeRegistry is the registry of the local cluster.
const nodeRegistry = "10.244.0.1:5000/"

// laterGone takes the package of the fleet away again.
func laterGone(t *testing.T) {
	management().run(t, "delete", "hostedclusterpackage", laterPackage, "--wait", "--timeout=50s")
}
