package gitops

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	. "github.com/onsi/gomega"
	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

// cases are objects, and what both tools are to make of them: Argo CD's word, and Flux's.
var cases = []struct {
	name, object string
	argo, flux   string
}{
	{"When nobody has looked at a hosted cluster it should be under way", hc("", ``), "Progressing", "InProgress"},
	{"When a control plane comes up for the first time it should be under way", hc("", `{type: Available, status: "False", observedGeneration: 2, message: etcd}`), "Progressing", "InProgress"},
	{"When a hosted cluster is available it should be healthy", hc("", `{type: Available, status: "True", observedGeneration: 2}, {type: Progressing, status: "False"}`), "Healthy", "Current"},
	{"When a spec was changed and nobody has seen it yet it should be under way", hc("", `{type: Available, status: "True", observedGeneration: 1}`), "Progressing", "InProgress"},
	{"When a release rolls out it should be under way", hc("", `{type: Available, status: "True", observedGeneration: 2}, {type: Progressing, status: "True"}`), "Progressing", "InProgress"},
	{"When etcd is lost it should be degraded", hc(`annotations: {hypershift.openshift.io/HasBeenAvailable: "true"}, `, `{type: Available, status: "False", observedGeneration: 2, message: 1 of 3 members}`), "Degraded", "Failed"},
	{"When a spec is invalid it should be degraded", hc("", `{type: Available, status: "False", observedGeneration: 2}, {type: ValidConfiguration, status: "False"}`), "Degraded", "Failed"},
	{"When replicas are missing it should be degraded", hc("", `{type: Available, status: "True", observedGeneration: 2}, {type: Degraded, status: "True"}`), "Degraded", "Failed"},
	{"When a hosted cluster is being deleted it should be under way", hc(`deletionTimestamp: "2026-11-23T12:00:00Z", `, `{type: Available, status: "True", observedGeneration: 2}`), "Progressing", "InProgress"},

	{"When machines are ready a pool should be healthy", pool(`{type: Ready, status: "True"}, {type: AllMachinesReady, status: "True"}, {type: AllNodesHealthy, status: "True"}, {type: UpdatingConfig, status: "False"}`), "Healthy", "Current"},
	{"When machines are being made a pool should be under way", pool(`{type: Ready, status: "False", reason: WaitingForAvailableMachines}`), "Progressing", "InProgress"},
	{"When machines are being replaced a pool should be under way", pool(`{type: Ready, status: "True"}, {type: UpdatingVersion, status: "True"}`), "Progressing", "InProgress"},
	{"When a release of a pool is refused it should be degraded", pool(`{type: Ready, status: "True"}, {type: ValidReleaseImage, status: "False"}`), "Degraded", "Failed"},
	{"When a rollout that nobody asked for is held a pool should be degraded", pool(`{type: Ready, status: "True"}, {type: UnrequestedRollout, status: "True", message: m}`), "Degraded", "Failed"},
	{"When too many machines are unhealthy a pool should be degraded", pool(`{type: Ready, status: "False", reason: TooManyUnhealthy}`), "Degraded", "Failed"},

	{"When a package is up it should be healthy", pkg(`{type: Available, status: "True", observedGeneration: 2}, {type: Progressing, status: "False", observedGeneration: 2}`), "Healthy", "Current"},
	{"When a package is rolled out it should be under way", pkg(`{type: Available, status: "False", observedGeneration: 2}, {type: Progressing, status: "True", observedGeneration: 2}`), "Progressing", "InProgress"},
	{"When a package is down it should be degraded", pkg(`{type: Available, status: "False", observedGeneration: 2}`), "Degraded", "Failed"},
	{"When a package is invalid it should be degraded", pkg(`{type: Available, status: "True", observedGeneration: 2}, {type: Invalid, status: "True", observedGeneration: 2}`), "Degraded", "Failed"},
	{"When a package says nothing about its newest change it should be under way", pkg(`{type: Available, status: "True", observedGeneration: 1}`), "Progressing", "InProgress"},

	{"When every hosted cluster has the package it should be healthy", fleet(2, `{type: Progressing, status: "False"}, {type: Available, status: "True"}`), "Healthy", "Current"},
	{"When a rollout is under way it should be so", fleet(2, `{type: Progressing, status: "True", message: 1 of 3}, {type: Available, status: "False"}`), "Progressing", "InProgress"},
	{"When a rollout failed and returned it should be degraded", fleet(2, `{type: Progressing, status: "True", message: "Failed and returned to the last good version: a/b."}`), "Degraded", "Failed"},
	{"When the newest template was not seen it should be under way", fleet(1, `{type: Progressing, status: "False"}`), "Progressing", "InProgress"},
}

func hc(meta, conditions string) string {
	return object("hypershift.openshift.io/v1beta1", "HostedCluster", meta, conditions, "")
}
func pool(conditions string) string {
	return object("hypershift.openshift.io/v1beta1", "NodePool", "", conditions, "")
}
func pkg(conditions string) string {
	return object("package-operator.run/v1alpha1", "Package", "", conditions, "")
}
func fleet(observed int, conditions string) string {
	return object("package-operator.run/v1alpha1", "HostedClusterPackage", "", conditions, map[int]string{1: "observedGeneration: 1, ", 2: "observedGeneration: 2, "}[observed])
}

func object(version, kind, meta, conditions, status string) string {
	status += "conditions: [" + conditions + "]"
	if conditions == "" {
		status = ""
	}
	return "{apiVersion: " + version + ", kind: " + kind + ", metadata: {" + meta + "name: x, generation: 2}, status: {" + status + "}}"
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

func read(t *testing.T, file string) map[string]any {
	t.Helper()
	raw, err := os.ReadFile("../../config/gitops/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(raw))
}

func TestArgoCD(t *testing.T) {
	scripts := read(t, "argocd-cm.yaml")["data"].(map[string]any)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			obj := parse(t, tc.object)
			group, _, _ := strings.Cut(obj["apiVersion"].(string), "/")
			script, ok := scripts["resource.customizations.health."+group+"_"+obj["kind"].(string)].(string)
			g.Expect(ok).To(BeTrue())
			status, message := runLua(t, script, obj)
			g.Expect(status).To(Equal(tc.argo), message)
			g.Expect(message).NotTo(BeEmpty())
		})
	}
	t.Run("When reconciliation is paused it should be suspended", func(t *testing.T) {
		g := NewWithT(t)
		for kind, obj := range map[string]string{
			"hypershift.openshift.io_HostedCluster":     hc("", `{type: ReconciliationActive, status: "False", message: m}`),
			"hypershift.openshift.io_NodePool":          pool(`{type: ReconciliationActive, status: "False", message: m}`),
			"package-operator.run_Package":              pkg(`{type: Paused, status: "True", observedGeneration: 2, message: m}`),
			"package-operator.run_HostedClusterPackage": object("a/b", "c", `annotations: {package-operator.run/rollout-paused: "true"}, `, "", ""),
			"package-operator.run_ClusterPackage":       pkg(`{type: Paused, status: "True", observedGeneration: 2, message: m}`),
		} {
			status, _ := runLua(t, scripts["resource.customizations.health."+kind].(string), parse(t, obj))
			g.Expect(status).To(Equal("Suspended"), kind)
		}
	})
}

// runLua runs a script as Argo CD does: with the object as obj, and no library that reaches the machine.
func runLua(t *testing.T, script string, obj map[string]any) (status, message string) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString} {
		l.Push(l.NewFunction(open))
		l.Push(lua.LString(name))
		l.Call(1, 0)
	}
	l.SetGlobal("obj", toLua(l, obj))
	if err := l.DoString(script); err != nil {
		t.Fatal(err)
	}
	result, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returned %v", l.Get(-1))
	}
	return result.RawGetString("status").String(), result.RawGetString("message").String()
}

func toLua(l *lua.LState, v any) lua.LValue {
	switch t := v.(type) {
	case map[string]any:
		out := l.NewTable()
		for k, e := range t {
			out.RawSetString(k, toLua(l, e))
		}
		return out
	case []any:
		out := l.NewTable()
		for _, e := range t {
			out.Append(toLua(l, e))
		}
		return out
	case string:
		return lua.LString(t)
	case bool:
		return lua.LBool(t)
	case float64:
		return lua.LNumber(t)
	}
	return lua.LNil
}

func TestFlux(t *testing.T) {
	spec := read(t, "flux-healthchecks.yaml")["spec"].(map[string]any)
	checks := map[string]map[string]any{}
	for _, c := range spec["healthCheckExprs"].([]any) {
		c := c.(map[string]any)
		checks[c["apiVersion"].(string)+" "+c["kind"].(string)] = c
	}
	env, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			obj := parse(t, tc.object)
			check := checks[obj["apiVersion"].(string)+" "+obj["kind"].(string)]
			g.Expect(check).NotTo(BeNil())
			g.Expect(evaluate(t, env, check, obj)).To(Equal(tc.flux))
		})
	}
	t.Run("When a cluster-scoped package is checked it should be as the other one", func(t *testing.T) {
		g := NewWithT(t)
		a, b := checks["package-operator.run/v1alpha1 Package"], checks["package-operator.run/v1alpha1 ClusterPackage"]
		for _, e := range []string{"inProgress", "failed", "current"} {
			g.Expect(a[e]).To(Equal(b[e]))
		}
	})
}

// evaluate asks the expressions in the order that Flux's RFC 9 names: in progress, failed, current; and in progress when none is true.
func evaluate(t *testing.T, env *cel.Env, check, obj map[string]any) string {
	t.Helper()
	status, _ := obj["status"].(map[string]any)
	meta := obj["metadata"].(map[string]any)
	if observed, ok := status["observedGeneration"]; ok && observed != meta["generation"] {
		return "InProgress"
	}
	for _, e := range []struct{ field, status string }{{"inProgress", "InProgress"}, {"failed", "Failed"}, {"current", "Current"}} {
		ast, issues := env.Parse(check[e.field].(string))
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(ast, cel.InterruptCheckFrequency(100))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, _, err := program.ContextEval(ctx, obj)
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", e.field, err)
		}
		if out.Value() == true {
			return e.status
		}
	}
	return "InProgress"
}
