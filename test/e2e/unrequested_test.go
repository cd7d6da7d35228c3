//go:build e2e && live

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/rolls"
)

const (
	olderPool     = "older"
	olderTemplate = "older-template"
)

// TestLiveUnrequested leaves machines as an older operator would have made them, from another template with the same settings, and starts the operator
// that would make others. It has to hold that, say what differs, and replace them when it is told to.
func TestLiveUnrequested(t *testing.T) {
	k := management()
	get := func(kind, path string) string {
		namespace := map[bool]string{true: "clusters", false: demoNamespace}[kind == "nodepool"]
		return k.run(t, "get", kind, "-n", namespace, olderPool, "-o", "jsonpath="+path)
	}
	t.Cleanup(func() {
		k.run(t, "scale", "-n", "hypershift", "deployment/operator", "--replicas=1")
		k.run(t, "delete", "nodepool", "-n", "clusters", olderPool, "--wait=false")
	})
	copyObject(t, "nodepool", "clusters", demoPool(t), olderPool, func(obj map[string]any) { obj["spec"].(map[string]any)["replicas"] = 1 })
	available := func(template string) func() error {
		return func() error {
			out, err := k.try(t, "get", "machinedeployment", "-n", demoNamespace, olderPool, "-o",
				"jsonpath={.spec.template.spec.infrastructureRef.name} {.status.replicas} {.status.availableReplicas} {.status.upToDateReplicas}")
			if !regexp.MustCompile(`^`+template+` 1 1 1$`).MatchString(out) || len(poolMachines(t, olderPool)) != 1 {
				return fmt.Errorf("%s %w", out, errors.Join(err, errors.New("is not one machine of "+template)))
			}
			return nil
		}
	}
	eventually(t, 3*time.Minute, "a machine", available(`older-[0-9a-f]+`))
	template := get("machinedeployment", "{.spec.template.spec.infrastructureRef.name}")

	asOlderOperator(t, get, template)
	k.run(t, "scale", "-n", "hypershift", "deployment/operator", "--replicas=1") // which machines need, to have room
	k.run(t, "rollout", "status", "deployment/operator", "-n", "hypershift", "--timeout=55s")
	eventually(t, 3*time.Minute, "a machine of an older operator", available(olderTemplate))
	before := poolMachines(t, olderPool)

	change := regexp.MustCompile(`all machines would be replaced although no spec was changed: .*` + olderTemplate + ` → ` + template)
	message := func() string {
		return get("nodepool", fmt.Sprintf(`{.status.conditions[?(@.type==%q)].message}`, hyperv1.NodePoolUnrequestedRolloutConditionType))
	}
	eventually(t, 2*time.Minute, "a rollout that is held", func() error {
		if said := message(); !change.MatchString(said) {
			return fmt.Errorf("its condition says %q", said)
		}
		return nil
	})
	out := run(t, time.Minute, "hypershift", "why", kubeconfigFlag(), "np/"+olderPool)
	if first, rest, _ := strings.Cut(out, "\n"); !change.MatchString(first) || !strings.Contains(rest, "pool-rollout-unrequested") {
		t.Errorf("the answer is %s", out)
	}
	if now := poolMachines(t, olderPool); !slices.Equal(now, before) {
		t.Errorf("machines are %v, and were %v", now, before)
	}

	// The message ends with what lets it go.
	_, command, ok := strings.Cut(message(), "kubectl ")
	if !ok {
		t.Fatalf("nothing says how to allow it: %s", message())
	}
	k.run(t, strings.Fields(command)...)
	eventually(t, 3*time.Minute, "a machine of this operator", available(template))
	if now := poolMachines(t, olderPool); slices.Equal(now, before) {
		t.Errorf("machines are still %v", now)
	}
	if said := message(); said != "" {
		t.Errorf("it is allowed, and the condition still says %s", said)
	}
}

// asOlderOperator stops the operator, has machines made from a copy of their template, and notes that as an operator does, at a time that is long ago.
func asOlderOperator(t *testing.T, get func(kind, path string) string, template string) {
	t.Helper()
	k := management()
	note, ok := rolls.Parse(get("nodepool", "{.metadata.annotations."+strings.ReplaceAll(hyperv1.NodePoolRollsAnnotation, ".", `\.`)+"}"))
	if !ok {
		t.Fatal("the NodePool has no note of what its machines were made from")
	}
	k.run(t, "scale", "-n", "hypershift", "deployment/operator", "--replicas=0")
	k.run(t, "wait", "pods", "-n", "hypershift", "-l", "name=operator", "--for=delete", "--timeout=50s")
	copyObject(t, "localmachinetemplate", demoNamespace, template, olderTemplate, nil)
	note.Hash, note.Asked = strings.ReplaceAll(note.Hash, template, olderTemplate), time.Now().Add(-2*rolls.Settle)
	for name, value := range note.Inputs {
		note.Inputs[name] = strings.ReplaceAll(value, template, olderTemplate)
	}
	text, err := note.Text()
	if err != nil {
		t.Fatal(err)
	}
	k.run(t, "annotate", "nodepool", "-n", "clusters", olderPool, "--overwrite", hyperv1.NodePoolRollsAnnotation+"="+text)
	k.run(t, "patch", "machinedeployment", "-n", demoNamespace, olderPool, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"template":{"spec":{"infrastructureRef":{"name":%q}}}}}`, olderTemplate))
}

// copyObject makes another object with the spec, the labels and the annotations of one, and with what change makes of it.
func copyObject(t *testing.T, kind, namespace, name, as string, change func(map[string]any)) {
	t.Helper()
	obj := map[string]any{}
	if err := json.Unmarshal([]byte(management().run(t, "get", kind, "-n", namespace, name, "-o", "json")), &obj); err != nil {
		t.Fatal(err)
	}
	meta := map[string]any{"namespace": namespace, "name": as}
	if kind != "nodepool" { // whose annotations are notes about its own machines
		for _, key := range []string{"labels", "annotations", "ownerReferences"} {
			if was, ok := obj["metadata"].(map[string]any)[key]; ok {
				meta[key] = was
			}
		}
	}
	obj["metadata"] = meta
	delete(obj, "status")
	if change != nil {
		change(obj)
	}
	raw, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	management().applyYAML(t, string(raw))
}
