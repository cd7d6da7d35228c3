//go:build e2e && sizes

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// autoNodeObjects are a node class of the NodePool burst, a NodePool of Karpenter, and Pods that run on its nodes alone.
const autoNodeObjects = `apiVersion: karpenter.hypershift.openshift.io/v1
kind: HyperShiftNodeClass
metadata: {name: burst}
spec:
  nodePool: burst
  instanceTypes:
  - {name: small, cpu: 500m, memory: 768Mi}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: burst}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.hypershift.openshift.io, kind: HyperShiftNodeClass, name: burst}
      requirements: [{key: node.kubernetes.io/instance-type, operator: Exists}]
      expireAfter: Never
  limits: {cpu: "3"}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 1s, budgets: [{nodes: 100%}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: burst, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: burst}}
  template:
    metadata: {labels: {app: burst}}
    spec:
      nodeSelector: {karpenter.sh/nodepool: burst}
      terminationGracePeriodSeconds: 1
      containers:
      - name: webapp
        image: 10.244.0.1:5000/hypershift/webapp:1.0.0
        resources: {requests: {cpu: 600m}}
`

// autoNode has Karpenter's core make two machines for Pods, and take them away again.
func autoNode(t *testing.T) {
	m := management()
	hosted := hostedKubectl(t, "demo")
	run(t, time.Minute, "hypershift", "create", "nodepool", "local", "--cluster-name", "demo", "--name", "burst", "--replicas", "0", kubeconfigFlag())
	eventually(t, sizesTime, "a template of the NodePool", func() error {
		_, err := m.try(t, "get", "machinedeployments.cluster.hypershift.openshift.io", "-n", "clusters-demo", "burst", "-o", "name")
		return err
	})
	log, err := os.Create(filepath.Join(stateDir, "karpenter.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.CommandContext(t.Context(), filepath.Join(root(t), "bin", "hcp-karpenter"))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+hosted.kubeconfig, "MANAGEMENT_KUBECONFIG="+m.kubeconfig, "MANAGEMENT_NAMESPACE=clusters-demo", "USE_PRIVATE_CAPI_TYPES=true",
		"DISABLE_LEADER_ELECTION=true", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if raw, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("hcp-karpenter said, at its end:\n%s", raw[max(0, len(raw)-6000):])
		}
	}()
	eventually(t, sizesTime, "definitions of Karpenter", func() error {
		_, err := hosted.try(t, "wait", "--for=condition=Established", "--timeout=10s", "crd/nodepools.karpenter.sh", "crd/nodeclaims.karpenter.sh", "crd/hypershiftnodeclasses.karpenter.hypershift.openshift.io")
		return err
	})
	start := time.Now()
	hosted.applyYAML(t, autoNodeObjects)
	nodes := func(want int) error {
		ready := hosted.run(t, "get", "nodes", "-l", "karpenter.sh/nodepool=burst", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}`)
		if got := strings.Count(ready, "=True"); got != want || len(strings.Fields(ready)) != want {
			claims, _ := hosted.try(t, "get", "nodeclaims,hypershiftnodeclasses", "-o", "wide")
			return fmt.Errorf("nodes %s, want %d Ready\n%s", ready, want, claims)
		}
		return nil
	}
	eventually(t, sizesTime, "two nodes for two Pods", func() error { return nodes(2) })
	eventually(t, sizesTime, "Pods on them", func() error {
		if got := hosted.run(t, "get", "deployment", "burst", "-o", "jsonpath={.status.availableReplicas}"); got != "2" {
			return fmt.Errorf("%q of 2 are available", got)
		}
		return nil
	})
	findings = append(findings, fmt.Sprintf("Karpenter: two Pods on two new machines after %s", time.Since(start).Round(time.Second)))
	t.Log(findings[len(findings)-1])
	start = time.Now()
	hosted.run(t, "scale", "deployment", "burst", "--replicas=0")
	eventually(t, sizesTime, "no node without Pods", func() error { return nodes(0) })
	eventually(t, sizesTime, "no machine", func() error {
		if left := m.run(t, "get", "localmachines.infrastructure.cluster.hypershift.openshift.io", "-n", "clusters-demo", "-l", "karpenter.hypershift.openshift.io/nodeclaim", "-o", "name"); left != "" {
			return fmt.Errorf("left: %s", left)
		}
		return nil
	})
	t.Logf("Karpenter: both gone after %s", time.Since(start).Round(time.Second))
}
