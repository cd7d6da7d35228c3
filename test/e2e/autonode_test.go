//go:build e2e && sizes

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// burst is how many Pods want a node each.
const burst = 5

// autoNodeObjects are a node class of the NodePool burst, a NodePool of Karpenter, and Pods that run on its nodes alone. A node has one processor, so that two of them
// don't fit.
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
  limits: {cpu: "6"}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 1s, budgets: [{nodes: 100%%}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: burst, namespace: default}
spec:
  replicas: %d
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

// autoNodeSpec asks for Karpenter.
const autoNodeSpec = `{"spec":{"autoNode":{"provisionerConfig":{"name":"Karpenter","karpenter":{"platform":"Local"}}}}}`

// autoNode asks for Karpenter, which makes a machine for each of five Pods, takes them away with the Pods, and goes when nobody asks for it any more.
func autoNode(t *testing.T) {
	m := management()
	hosted := hostedKubectl(t, "demo")
	t.Cleanup(func() {
		if t.Failed() {
			said, _ := m.try(t, "logs", "-n", "clusters-demo", "deployment/karpenter", "--tail=60")
			t.Logf("hcp-karpenter said, at its end:\n%s", said)
		}
	})
	run(t, time.Minute, "hypershift", "create", "nodepool", "local", "--cluster-name", "demo", "--name", "burst", "--replicas", "0", kubeconfigFlag())
	m.run(t, "patch", "hostedcluster", "-n", "clusters", "demo", "--type=merge", "-p", autoNodeSpec)
	enabled := func(want string) {
		eventually(t, sizesTime, "AutoNodeEnabled", func() error {
			if got := m.run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", `jsonpath={range .status.conditions[?(@.type=="AutoNodeEnabled")]}{.status} {.reason} {.message}{end}`); !strings.HasPrefix(got, want) {
				return fmt.Errorf("it is %q, want %s", got, want)
			}
			return nil
		})
	}
	start := time.Now()
	enabled("True AsExpected")
	findings = append(findings, fmt.Sprintf("Karpenter ran %s after it was asked for", time.Since(start).Round(time.Second)))
	hosted.run(t, "wait", "--for=condition=Established", "--timeout=15s", "crd/nodepools.karpenter.sh", "crd/nodeclaims.karpenter.sh", "crd/hypershiftnodeclasses.karpenter.hypershift.openshift.io")
	start = time.Now()
	hosted.applyYAML(t, fmt.Sprintf(autoNodeObjects, burst))
	nodes := func(want int) error {
		ready := hosted.run(t, "get", "nodes", "-l", "karpenter.sh/nodepool=burst", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}`)
		if got := strings.Count(ready, "=True"); got != want || len(strings.Fields(ready)) != want {
			claims, _ := hosted.try(t, "get", "nodeclaims,hypershiftnodeclasses", "-o", "wide")
			return fmt.Errorf("nodes %s, want %d Ready\n%s", ready, want, claims)
		}
		return nil
	}
	eventually(t, sizesTime, "a node for each Pod", func() error { return nodes(burst) })
	eventually(t, sizesTime, "Pods on them", func() error {
		if got := hosted.run(t, "get", "deployment", "burst", "-o", "jsonpath={.status.availableReplicas}"); got != fmt.Sprint(burst) {
			return fmt.Errorf("%q of %d are available", got, burst)
		}
		return nil
	})
	findings = append(findings, fmt.Sprintf("Karpenter: from no machine to %d, with a Pod on each, in %s", burst, time.Since(start).Round(time.Second)))
	if got := len(strings.Fields(hosted.run(t, "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))); got != burst+2 {
		t.Errorf("the hosted cluster has %d nodes, want the %d of its NodePool, too", got, 2)
	}
	start = time.Now()
	hosted.run(t, "scale", "deployment", "burst", "--replicas=0")
	eventually(t, sizesTime, "no node without Pods", func() error { return nodes(0) })
	machines := "machines.cluster.hypershift.openshift.io,localmachines.infrastructure.cluster.hypershift.openshift.io"
	eventually(t, sizesTime, "no machine", func() error {
		if left := m.run(t, "get", machines, "-n", "clusters-demo", "-l", "karpenter.hypershift.openshift.io/nodeclaim", "-o", "name"); left != "" {
			return fmt.Errorf("left: %s", left)
		}
		return nil
	})
	findings = append(findings, fmt.Sprintf("Karpenter: back to none in %s", time.Since(start).Round(time.Second)))

	// It is removed while Pods run on its nodes.
	hosted.run(t, "scale", "deployment", "burst", "--replicas=2")
	eventually(t, sizesTime, "a node for each Pod", func() error { return nodes(2) })
	if got := m.run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", "jsonpath={.status.autoNode.nodeClaimCount}"); got != "2" {
		t.Errorf("status.autoNode counts %q machines, want 2", got)
	}
	sleepWithKarpenter(t, nodes, machines)

	start = time.Now()
	m.run(t, "patch", "hostedcluster", "-n", "clusters", "demo", "--type=merge", "-p", `{"spec":{"autoNode":null}}`)
	enabled("False AutoNodeProgressing Karpenter is removed once")
	enabled("False AutoNodeNotConfigured")
	findings = append(findings, fmt.Sprintf("Karpenter: removed with two nodes, it was gone with them %s after", time.Since(start).Round(time.Second)))
	if err := nodes(0); err != nil {
		t.Error(err)
	}
	if left := m.run(t, "get", machines, "-n", "clusters-demo", "-l", "karpenter.hypershift.openshift.io/nodeclaim", "-o", "name"); left != "" {
		t.Errorf("machines are left: %s", left)
	}
	if got := hosted.run(t, "get", "nodeclaims,nodepools.karpenter.sh", "-o", "name"); got != "nodepool.karpenter.sh/burst" {
		t.Errorf("of Karpenter's objects there are %q, want what the user made", got)
	}
	eventually(t, sizesTime, "the end of its pod", func() error {
		if left := m.run(t, "get", "deployments,pods", "-n", "clusters-demo", "-l", "app=karpenter", "-o", "name"); left != "" {
			return errors.New(left)
		}
		return nil
	})
	run(t, time.Minute, "hypershift", "destroy", "nodepool", "--name", "burst", kubeconfigFlag())
}

// sleepWithKarpenter puts the hosted cluster to sleep while Pods run on two of Karpenter's nodes, and wakes it.
func sleepWithKarpenter(t *testing.T, nodes func(int) error, machines string) {
	m := management()
	start := time.Now()
	run(t, time.Minute, "hypershift", "hibernate", "demo", kubeconfigFlag())
	is := func(condition string) {
		eventually(t, sizesTime, condition, func() error {
			if got := m.run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", `jsonpath={range .status.conditions[?(@.type=="`+condition+`")]}{.status} {.reason} {.message}{end}`); !strings.HasPrefix(got, "True") {
				return fmt.Errorf("it is %q, want True", got)
			}
			return nil
		})
	}
	is("Hibernated")
	findings = append(findings, fmt.Sprintf("Karpenter: asleep with two of its nodes %s after", time.Since(start).Round(time.Second)))
	if left := m.run(t, "get", machines, "-n", "clusters-demo", "-o", "name"); left != "" {
		t.Errorf("the hosted cluster sleeps with machines: %s", left)
	}
	if left := m.run(t, "get", "deployments,pods", "-n", "clusters-demo", "-l", "app=karpenter", "-o", "name"); left != "" {
		t.Errorf("the hosted cluster sleeps with Karpenter: %s", left)
	}
	start = time.Now()
	run(t, time.Minute, "hypershift", "wake", "demo", kubeconfigFlag())
	is("Available")
	eventually(t, sizesTime, "a node for each Pod", func() error { return nodes(2) })
	findings = append(findings, fmt.Sprintf("Karpenter: two nodes again %s after the cluster was woken", time.Since(start).Round(time.Second)))
}
