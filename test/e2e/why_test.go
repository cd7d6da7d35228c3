//go:build e2e && live

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// liveFault is something that is broken in a running cluster, and the answer to `hypershift why`.
type liveFault struct {
	name string
	// ask is what follows "why".
	ask []string
	// inject breaks it, and undo puts it right.
	inject, undo func(t *testing.T)
	// cause is a regular expression for the first line.
	cause, rule string
	// told: conditions of the HostedCluster say the same.
	told bool
}

// whyFaults lists the faults, for a management cluster and the NodePool of its demo cluster, and those that have not been seen to pass.
func whyFaults(k kubectl, pool string) (seen, unseen []liveFault) {
	do := func(args ...string) func(*testing.T) { return func(t *testing.T) { k.run(t, args...) } }
	apply := func(manifest string) func(*testing.T) { return func(t *testing.T) { k.applyYAML(t, manifest) } }
	patch := func(kind, name, body string) func(*testing.T) {
		return do("patch", kind, "-n", "clusters", name, "--type=merge", "-p", body)
	}
	nodes := func(verb string) func(*testing.T) {
		return func(t *testing.T) {
			for _, node := range strings.Fields(k.run(t, "get", "nodes", "-o", "name")) {
				k.run(t, verb, node)
			}
		}
	}
	// keep patches a spec, and puts the release image back that was there before when the patch is empty.
	before := map[string]string{}
	keep := func(kind, name, body string) func(*testing.T) {
		return func(t *testing.T) {
			if body == "" {
				patch(kind, name, fmt.Sprintf(`{"spec":{"release":{"image":%q}}}`, before[kind]))(t)
				return
			}
			before[kind] = k.run(t, "get", kind, "-n", "clusters", name, "-o", "jsonpath={.spec.release.image}")
			patch(kind, name, body)(t)
		}
	}
	// copied makes another object with the spec of one.
	copied := func(kind, name, as, finalizer string) func(*testing.T) {
		return func(t *testing.T) {
			obj := map[string]any{}
			if err := json.Unmarshal([]byte(k.run(t, "get", kind, "-n", "clusters", name, "-o", "json")), &obj); err != nil {
				t.Fatal(err)
			}
			meta, spec := map[string]any{"namespace": "clusters", "name": as}, obj["spec"].(map[string]any)
			if finalizer != "" {
				meta["finalizers"] = []string{finalizer}
			}
			for _, own := range []string{"infraID", "clusterID"} {
				delete(spec, own)
			}
			if _, ok := spec["replicas"]; ok {
				spec["replicas"] = 0
			}
			obj["metadata"] = meta
			delete(obj, "status")
			raw, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			k.applyYAML(t, string(raw))
		}
	}
	cluster, control := []string{"hostedcluster/demo"}, "clusters-demo"
	release := func(t *testing.T) string {
		return k.run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", "jsonpath={.spec.release.image}")
	}
	broken, unbroken := []string{"objectdeployment/broken", "-n", "default"}, do("delete", "objectdeployment", "-n", "default", "broken")
	seen, unseen = harmFaults(k, pool, copied)
	return append(seen, []liveFault{
		{"a package installs what the API server does not know", broken, apply(brokenObjects(`{apiVersion: example.com/v1, kind: Nonsense, metadata: {name: x}}`)), unbroken, `Nonsense not registered`, "definition-missing", false},
		{"a package reaches into another namespace", broken, apply(brokenObjects(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: kube-system}}`)), unbroken, `kube-system`, "object-refused", false},
		{"a package installs what somebody else has", broken, apply(brokenObjects(`{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}`)), unbroken, `kube-root-ca\.crt kind:ConfigMap`, "object-collision", false},
		{"what a package installs does not start", broken, apply(brokenObjects(neverStarts)), unbroken, `starts-not-\S+ can't get image.*127\.0\.0\.1:1/none:1`, "pod-image-pull-back-off", false},
		{"the image of a package is none", []string{"package/nowhere", "-n", "default"}, func(t *testing.T) {
			apply(strings.ReplaceAll(fmt.Sprintf(nowherePackage, ""), "127.0.0.1:1/none:1", release(t)))(t)
		},
			do("delete", "package", "-n", "default", "nowhere"), `contains no files`, "package-invalid", false},
		{"the hosted cluster is paused", cluster, patch("hostedcluster", "demo", `{"spec":{"pausedUntil":"true"}}`), patch("hostedcluster", "demo", `{"spec":{"pausedUntil":null}}`), `[Pp]aused`, "cluster-paused", true},
		{"a ConfigMap of the pool does not exist", []string{"np/" + pool}, patch("nodepool", pool, `{"spec":{"config":[{"name":"nowhere"}]}}`), patch("nodepool", pool, `{"spec":{"config":null}}`), `ConfigMap "nowhere"`, "pool-config-invalid", false},
		{"the release image is in a registry that is nowhere", cluster, keep("hostedcluster", "demo", `{"spec":{"release":{"image":"127.0.0.1:1/none:1"}}}`), keep("hostedcluster", "demo", ""), `127\.0\.0\.1:1/none:1`, "release-unreadable", true},
		{"the release image of the pool is nowhere", []string{"np/" + pool}, keep("nodepool", pool, `{"spec":{"release":{"image":"127.0.0.1:1/none:1"}}}`), keep("nodepool", pool, ""), `127\.0\.0\.1:1/none:1`, "pool-release-invalid", false},
		{"the pool is paused", []string{"np/" + pool}, patch("nodepool", pool, `{"spec":{"pausedUntil":"true"}}`), patch("nodepool", pool, `{"spec":{"pausedUntil":null}}`), `[Pp]aused`, "pool-paused", false},
		{"the operator does not start", cluster, do("patch", "deployment", "operator", "-n", "hypershift", "--type=json", "-p", `[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--nonsense"}]`),
			do("rollout", "undo", "-n", "hypershift", "deployment/operator"), `operator-\S+ does not stay up`, "pod-crash-loop-back-off", false},
		{"an image of the control plane is nowhere", cluster, patch("hostedcluster", "demo", `{"metadata":{"annotations":{"hypershift.openshift.io/image-overrides":"kube-scheduler=127.0.0.1:1/none:1"}}}`),
			patch("hostedcluster", "demo", `{"metadata":{"annotations":{"hypershift.openshift.io/image-overrides":null}}}`), `kube-scheduler-\S+ can't get image.*127\.0\.0\.1:1/none:1`, "pod-image-pull-back-off", false},
		{"the namespace of a control plane is somebody else's", []string{"hostedcluster/clash"}, inTurn(do("create", "namespace", "clusters-clash"), copied("hostedcluster", "demo", "clash", "")),
			inTurn(do("delete", "hostedcluster", "-n", "clusters", "clash"), do("delete", "namespace", "clusters-clash")), `clusters-clash`, "", false},
		{"somebody's finalizer holds a pool", []string{"np/held"}, inTurn(copied("nodepool", pool, "held", "example.com/keep"), do("delete", "nodepool", "-n", "clusters", "held", "--wait=false")),
			patch("nodepool", "held", `{"metadata":{"finalizers":null}}`), `finalizer example\.com/keep holds`, "deletion-finalizer", false},
		{"a quota refuses pods", cluster, inTurn(do("create", "quota", "none", "-n", control, "--hard=pods=0"), do("delete", "pod", "-n", control, "-l", "app=kube-scheduler", "--wait=false")),
			do("delete", "quota", "none", "-n", control), `kube-scheduler are refused: exceeded quota`, "pods-refused", true},
		{"no node takes pods", cluster, inTurn(nodes("cordon"), do("delete", "pod", "-n", control, "-l", "app=kube-scheduler", "--wait=false")), nodes("uncordon"), `kube-scheduler-\S+ fits on no node`, "pod-unschedulable", true},
		{"no node takes a member of etcd", cluster, inTurn(nodes("cordon"), do("delete", "pod", "-n", control, "etcd-0", "--wait=false")), nodes("uncordon"), `etcd-0 fits on no node`, "pod-unschedulable", true},
		{"the image of the control-plane-operator is nowhere", cluster, patch("hostedcluster", "demo", `{"metadata":{"annotations":{"hypershift.openshift.io/control-plane-operator-image":"127.0.0.1:1/none:1"}}}`),
			patch("hostedcluster", "demo", `{"metadata":{"annotations":{"hypershift.openshift.io/control-plane-operator-image":null}}}`), `127\.0\.0\.1:1/none:1`, "pod-image-pull-back-off", true},
		{"the operator is scaled away", cluster, do("scale", "-n", "hypershift", "deployment/operator", "--replicas=0"), do("scale", "-n", "hypershift", "deployment/operator", "--replicas=1"), `Deployment operator is scaled to 0`, "workload-off", false},
		{"a webhook is dead", cluster, inTurn(apply(deadWebhook), do("delete", "networkpolicy", "-n", control, "--all", "--wait=false")), do("delete", "validatingwebhookconfiguration", "dead"), `failed calling webhook "dead\.example\.com"`, "webhook-down", true},
		{"the image of a package is nowhere", []string{"package/nowhere", "-n", "default"}, apply(fmt.Sprintf(nowherePackage, "")), do("delete", "package", "-n", "default", "nowhere"), `127\.0\.0\.1:1/none:1`, "package-image-unreadable", false},
		{"somebody's finalizer holds a package", []string{"package/nowhere", "-n", "default"}, inTurn(apply(fmt.Sprintf(nowherePackage, "finalizers: [example.com/keep]")), do("delete", "package", "-n", "default", "nowhere", "--wait=false")),
			do("patch", "package", "-n", "default", "nowhere", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`), `finalizer example\.com/keep holds`, "deletion-finalizer", false},
		{"a rollout installs what is nowhere", []string{"hostedclusterpackage/nowhere"}, apply(nowhereFleet), do("delete", "hostedclusterpackage", "nowhere"), `127\.0\.0\.1:1/none:1`, "package-image-unreadable", false},
		{"a rollout is paused that installs what is nowhere", []string{"hostedclusterpackage/nowhere"}, apply(strings.Replace(nowhereFleet, "name: nowhere", `name: nowhere, annotations: {package-operator.run/rollout-paused: "true"}`, 1)),
			do("delete", "hostedclusterpackage", "nowhere"), `127\.0\.0\.1:1/none:1`, "nothing is changed: the rollout is paused", false},
		{"the component of a control plane is asked for while nothing is wrong", []string{"component/etcd", "--cluster=demo"}, func(*testing.T) {}, func(*testing.T) {}, `nothing is wrong`, "", false},
	}...), unseen
}

const deadWebhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: dead}
webhooks:
- name: dead.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 1
  clientConfig: {url: "https://127.0.0.1:1/x"}
  rules: [{apiGroups: [networking.k8s.io], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [networkpolicies]}]
`

// brokenObjects is an ObjectDeployment of one object.
func brokenObjects(object string) string {
	return `
apiVersion: package-operator.run/v1alpha1
kind: ObjectDeployment
metadata: {name: broken, namespace: default}
spec:
  selector: {matchLabels: {test: broken}}
  template:
    metadata: {labels: {test: broken}}
    spec:
      availabilityProbes:
      - selector: {kind: {group: apps, kind: Deployment}}
        probes: [{condition: {type: Available, status: "True"}}]
      phases: [{name: deploy, objects: [{object: ` + object + `}]}]
`
}

const neverStarts = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: starts-not}, spec: {selector: {matchLabels: {test: broken}},
        template: {metadata: {labels: {test: broken}}, spec: {containers: [{name: x, image: "127.0.0.1:1/none:1"}]}}}}`

const nowherePackage = `
apiVersion: package-operator.run/v1alpha1
kind: Package
metadata: {name: nowhere, namespace: default, %s}
spec: {image: "127.0.0.1:1/none:1"}
`

const nowhereFleet = `
apiVersion: package-operator.run/v1alpha1
kind: HostedClusterPackage
metadata: {name: nowhere}
spec:
  strategy: {rollingUpgrade: {maxUnavailable: 1}}
  template: {spec: {image: "127.0.0.1:1/none:1"}}
`

// askFor is how long an answer may take to be the right one: kubelets find a dead program within a minute, and give a node up within another.
const askFor = 3 * time.Minute

// TestLiveWhy breaks a running demo cluster in several ways, one after the other, and asks why. It leaves the cluster as it was.
func TestLiveWhy(t *testing.T) {
	k := management()
	seen, _ := whyFaults(k, demoPool(t))
	askAll(t, seen)
	t.Run("When it is asked what became of it the journal should tell, and that nothing is wrong now", func(t *testing.T) {
		out := run(t, time.Minute, "hypershift", "timeline", kubeconfigFlag(), "demo")
		for _, want := range []string{"ReconciliationPaused", "ReconciliationActive", "Available"} {
			if !strings.Contains(out, want) {
				t.Errorf("the journal does not tell of %s:\n%s", want, out)
			}
		}
		if out := run(t, time.Minute, "hypershift", "first-failure", kubeconfigFlag(), "demo"); !strings.Contains(out, "nothing is wrong") {
			t.Errorf("the first failure is %s", out)
		}
	})
}

// TestWhyUnseen does the same with faults that have not been seen to pass: make e2e-live TEST_FLAGS='-run ^TestWhyUnseen$'. What passes moves to the others.
func TestWhyUnseen(t *testing.T) {
	_, unseen := whyFaults(management(), demoPool(t))
	askAll(t, unseen)
}

func demoPool(t *testing.T) string {
	t.Helper()
	return strings.Fields(management().run(t, "get", "nodepools", "-n", "clusters", "-o", "jsonpath={.items[*].metadata.name}"))[0]
}

// askAll injects each fault, asks why until the answer is right, and puts it right.
func askAll(t *testing.T, faults []liveFault) {
	k, pool := management(), demoPool(t)
	const program = "hypershift"
	why := func(args ...string) (string, error) {
		return try(t, time.Minute, program, append([]string{"why", kubeconfigFlag()}, args...)...)
	}
	well := func(t *testing.T) {
		// What is broken again and again goes back and forth in conditions, which is told for five minutes.
		k.run(t, "delete", "events", "-n", "clusters", "--field-selector=reason=HotLoop")
		for _, of := range []string{"hostedcluster/demo", "nodepool/" + pool} {
			eventually(t, 5*time.Minute, of+" to be well", func() error {
				if out, err := why(of); err != nil || !strings.Contains(out, "nothing is wrong") {
					return fmt.Errorf("%s (%v)", out, err)
				}
				return nil
			})
		}
	}
	well(t)
	ask := func(t *testing.T, f liveFault, after func(*testing.T)) {
		t.Run("When "+f.name+" the first line should say so", func(t *testing.T) {
			defer after(t)
			defer f.undo(t)
			f.inject(t)
			began := time.Now()
			eventually(t, askFor, "the cause", func() error {
				out, err := why(f.ask...)
				first, rest, _ := strings.Cut(out, "\n")
				if err != nil || !regexp.MustCompile(f.cause).MatchString(first) || !strings.Contains(rest, f.rule) {
					return fmt.Errorf("the answer is %s (%v), want %s by rule %s", out, err, f.cause, f.rule)
				}
				t.Logf("after %s: %s", time.Since(began).Round(time.Second), first)
				return nil
			})
			if !f.told {
				return
			}
			eventually(t, 2*time.Minute, "conditions that say the same", func() error {
				said := k.run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", "jsonpath={.status.conditions[*].message}")
				if !regexp.MustCompile(f.cause).MatchString(said) {
					return fmt.Errorf("they say %s, want %s", said, f.cause)
				}
				return nil
			})
		})
	}
	// What has objects of its own goes on beside what breaks the demo cluster, which has to be well again each time.
	t.Run("all of", func(t *testing.T) {
		t.Run("the demo cluster", func(t *testing.T) {
			t.Parallel()
			for _, f := range faults {
				if ofDemo(f, pool) {
					ask(t, f, well)
				}
			}
		})
		t.Run("others", func(t *testing.T) {
			t.Parallel()
			for _, f := range faults {
				if !ofDemo(f, pool) {
					ask(t, f, func(*testing.T) {})
				}
			}
		})
	})
}

// ofDemo tells a fault of the demo cluster, or of its pool, from one of objects that are there for it alone.
func ofDemo(f liveFault, pool string) bool {
	return slices.Contains([]string{"hostedcluster/demo", "np/" + pool}, f.ask[0]) || slices.Contains(f.ask, "--cluster=demo")
}

// contest has two sides write a label of the demo cluster until it is undone: an operator that comes up meanwhile, as after what was done before, has to see enough of it.
func contest(k kubectl) (begin, undo func(*testing.T)) {
	end := func() {}
	begin = func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), askFor)
		done := make(chan struct{})
		end = func() { stop(); <-done }
		go func() {
			defer close(done)
			for i := 0; ctx.Err() == nil; i++ {
				_, _ = k.try(t, "label", "hostedcluster", "-n", "clusters", "demo", "--overwrite", "side="+[]string{"left", "right"}[i%2]) // the other side is written all the same
			}
		}()
	}
	return begin, func(t *testing.T) {
		end()
		k.run(t, "label", "hostedcluster", "-n", "clusters", "demo", "side-")
	}
}
