//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestUp is one test with ordered steps, because they share the one cluster that a machine can run.
func TestUp(t *testing.T) {
	noCluster(t)
	before := machineState(t)
	inOrder(t, []step{
		{"When up runs it should end with an available hosted cluster", up},
		{"When README's tour is pasted it should do what it promises", pasteTour},
		{"When up has shown a package nothing of it should be left", packageShown},
		{"When up has delivered an add-on it should be seen on both sides", addonDelivered},
		{"When up runs again it should change nothing", upAgain},
		{"When pods call what is not theirs it should be refused, and what is theirs be open", packetsAreRefused},
		{"When up is over and nothing changes everything should rest", func(t *testing.T) {
			workersReady(t)
			staysQuiet(t)
		}},
		{"When the hosted API is used with kubectl it should behave as Kubernetes", useHostedAPI},
		{"When an application runs on them it should be reached from everywhere", runWebapp},
		{"When workers, packages and the release have changed it should end well", muchLater},
		{"When all of that is behind it and nothing changes everything should rest", staysQuiet},
		{"When the package of the fleet is deleted it should go", laterGone},
		{"When somebody else's Cluster API comes and goes nothing should move", platformComesAndGoes},
		{"When more hosted clusters are made than fit nothing of the demo should move, and the rest should wait", moreThanFits},
		{"When etcd is killed the hosted cluster should come back with its data", killEtcd},
		{"When an operator is killed it should converge", killOperators},
		{"When the node's kubelet and containerd are killed containers should go on, and new ones start", killNode},
		{"When an adversary harms everything while users work every promise should hold", func(t *testing.T) { meetAdversary(t, 1, 5*time.Minute) }},
		{"When the cluster is destroyed nothing of it should be left", destroy},
		{"When down runs nothing should be left on the machine", func(t *testing.T) {
			run(t, 3*time.Minute, "hypershift", "local", "down", "--state-dir", stateDir)
			nothingLeft(t, before)
		}},
	})
}

func up(t *testing.T) {
	start := time.Now()
	out := run(t, 25*time.Minute, "hypershift", "local", "up", "--state-dir", stateDir)
	t.Logf("up took %s:\n%s", time.Since(start).Round(time.Second), out)
	for _, line := range []string{
		"$ kubectl package build config/examples/packages/web --tag 10.244.0.1:5000/examples/web:1.0.0 --push", "revision 1 is there after",
		"version 1.0.0", "revision 2 is there after", "version 2.0.0", "Package source image changed.", "Package tour-web/web is removed",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("up does not show a package: no %q", line)
		}
	}
	if !strings.Contains(out, "export KUBECONFIG=") {
		t.Errorf("up does not end with the line that a person needs next")
	}
	if got := management().run(t, "get", "nodes", "-o", "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"); got != "True" {
		t.Errorf("Ready of the management node is %q, want True", got)
	}
	for condition, want := range map[string]string{
		"Available": "True", "Progressing": "False", "Degraded": "False", "EtcdAvailable": "True", "KubeAPIServerAvailable": "True",
		"InfrastructureReady": "True", "ValidConfiguration": "True", "ValidReleaseImage": "True", "ReconciliationSucceeded": "True",
		"ClusterVersionAvailable": "True", "ClusterVersionProgressing": "False",
		"ClusterVersionSucceeding": "True", "ClusterVersionUpgradeable": "True", "IgnitionEndpointAvailable": "True", "AllFieldsHeeded": "True",
	} {
		eventually(t, time.Minute, condition, func() error {
			got, err := management().try(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o",
				fmt.Sprintf("jsonpath={.status.conditions[?(@.type=='%s')].status}", condition))
			if err != nil || got != want {
				return errors.Join(fmt.Errorf("%s is %q, want %s", condition, got, want), err)
			}
			return nil
		})
	}
	eventually(t, time.Minute, "version history", func() error {
		got, err := management().try(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", "jsonpath={.status.version.history[0].state}")
		if err != nil || got != "Completed" {
			return errors.Join(fmt.Errorf("newest entry is %q, want Completed", got), err)
		}
		return nil
	})
}

// packageShown checks what is left of the package that up shows: its images, for somebody to try.
func packageShown(t *testing.T) {
	for _, kind := range []string{"packages", "objectdeployments", "objectsets", "objectslices"} {
		if out := management().run(t, "get", kind, "-n", "tour-web", "-o", "name"); out != "" {
			t.Errorf("left of the package: %s", out)
		}
	}
	if out, err := management().try(t, "get", "namespace", "tour-web"); err == nil {
		t.Errorf("its namespace is still there: %s", out)
	}
	for _, version := range []string{"1.0.0", "2.0.0"} {
		run(t, time.Minute, "kubectl-package", "validate", "--pull", "10.244.0.1:5000/examples/web:"+version)
	}
}

func upAgain(t *testing.T) {
	uids := func() string {
		return management().run(t, "get", "pods", "-A", "-o", `jsonpath={range .items[*]}{.metadata.uid}{" "}{.status.containerStatuses[*].restartCount}{"\n"}{end}`)
	}
	before := uids()
	if out := run(t, 10*time.Minute, "hypershift", "local", "up", "--state-dir", stateDir); strings.Contains(out, "kubectl package") {
		t.Errorf("up shows again what it has shown:\n%s", out)
	}
	if after := uids(); after != before {
		t.Errorf("pods changed:\nbefore:\n%s\nafter:\n%s", before, after)
	}
}

func useHostedAPI(t *testing.T) {
	k := hosted()
	if got := k.run(t, "get", "--raw", "/readyz"); got != "ok" {
		t.Fatalf("/readyz says %q", got)
	}
	k.run(t, "create", "namespace", "web")
	k.run(t, "create", "configmap", "-n", "web", "kept", "--from-literal=answer=42")
	k.run(t, "create", "secret", "generic", "-n", "web", "hidden", "--from-literal=token=hunter2")
	k.applyYAML(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.test}
spec:
  group: example.test
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 3}}}}}}
`)
	k.run(t, "wait", "--for=condition=Established", "crd/widgets.example.test", "--timeout=30s")
	k.applyYAML(t, "apiVersion: example.test/v1\nkind: Widget\nmetadata: {name: w, namespace: web}\nspec: {size: 2}\n")
	if out, err := k.try(t, "patch", "widget", "-n", "web", "w", "--type=merge", "-p", `{"spec":{"size":9}}`); err == nil {
		t.Errorf("a widget of size 9 was accepted: %s", out)
	}
	k.run(t, "create", "serviceaccount", "-n", "web", "reader")
	k.run(t, "create", "role", "reader", "-n", "web", "--verb=get", "--resource=configmaps")
	k.run(t, "create", "rolebinding", "reader", "-n", "web", "--role=reader", "--serviceaccount=web:reader")
	as := "--as=system:serviceaccount:web:reader"
	eventually(t, time.Minute, "the rights of the reader", func() error { // the API server hears of a RoleBinding by a watch
		if got, err := k.try(t, "auth", "can-i", "get", "configmaps", "-n", "web", as); strings.TrimSpace(got) != "yes" {
			return errors.Join(fmt.Errorf("it may not get configmaps: %s", got), err)
		}
		return nil
	})
	if got, _ := k.try(t, "auth", "can-i", "get", "secrets", "-n", "web", as); !strings.HasPrefix(got, "no") {
		t.Errorf("the reader may get secrets: %s", got)
	}
	// A controller of the hosted kube-controller-manager answers a watch.
	k.run(t, "create", "deployment", "-n", "web", "app", "--image=example.test/app")
	k.run(t, "wait", "-n", "web", "deployment/app", "--for=jsonpath={.status.replicas}=1", "--timeout=60s")
	// There is no such image, and a kubelet that tries to pull it for ever is never quiet.
	k.run(t, "delete", "deployment", "-n", "web", "app", "--cascade=foreground", "--wait", "--timeout=60s")
	// The default token of a service account is issued and accepted.
	token := k.run(t, "create", "token", "-n", "web", "reader")
	if len(strings.Split(token, ".")) != 3 {
		t.Errorf("not a token: %d bytes", len(token))
	}
}

func killEtcd(t *testing.T) {
	ns := "clusters-demo"
	management().run(t, "delete", "pod", "-n", ns, "etcd-0", "--grace-period=0", "--force")
	eventually(t, 3*time.Minute, "the hosted API with its data", func() error {
		got, err := hosted().try(t, "get", "configmap", "-n", "web", "kept", "-o", "jsonpath={.data.answer}")
		if err != nil || got != "42" {
			return fmt.Errorf("answer is %q: %w", got, err)
		}
		return nil
	})
}

func killOperators(t *testing.T) {
	for _, target := range [][]string{{"hypershift", "name=operator"}, {"clusters-demo", "hypershift.openshift.io/control-plane-component=control-plane-operator"}} {
		management().run(t, "delete", "pod", "-n", target[0], "-l", target[1], "--grace-period=0", "--force", "--wait=false")
	}
	replaceScheduler(t)
	operatorLeads(t)
}

// operatorLeads waits until the hypershift-operator that runs is the one that works: the scheduler is the control-plane-operator's, and whoever comes
// next would wait for the lease of one that was killed.
func operatorLeads(t *testing.T) {
	t.Helper()
	eventually(t, 5*time.Minute, "the lease of the operator", func() error {
		pods, err := management().try(t, "get", "pods", "-n", "hypershift", "-l", "name=operator", "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil {
			return err
		}
		holder, err := management().try(t, "get", "lease", "-n", "hypershift", "hypershift-operator-leader-elect", "-o", "jsonpath={.spec.holderIdentity}")
		if err != nil || holder == "" || !slices.Contains(strings.Fields(pods), holder) {
			return errors.Join(fmt.Errorf("it is held by %q, and there are pods %s", holder, pods), err)
		}
		return nil
	})
}

// replaceScheduler deletes a Deployment that the operators have to make again, and the node to run.
func replaceScheduler(t *testing.T) {
	t.Helper()
	management().run(t, "delete", "deployment", "-n", "clusters-demo", "kube-scheduler")
	// An operator that was killed before it could give its lease back is followed when that ends: 137 s, and up to 26 s until it is tried for again.
	eventually(t, 5*time.Minute, "the deleted scheduler", func() error {
		got, err := management().try(t, "get", "deployment", "-n", "clusters-demo", "kube-scheduler", "-o", "jsonpath={.status.readyReplicas}")
		if err != nil || got != "1" {
			return errors.Join(fmt.Errorf("%q ready", got), err)
		}
		return nil
	})
}

// killNode kills what runs the management cluster's containers, with no chance to say goodbye.
func killNode(t *testing.T) {
	started := func() string {
		return management().run(t, "get", "pod", "-n", "clusters-demo", "etcd-0", "-o", "jsonpath={.status.containerStatuses[0].state.running.startedAt}")
	}
	before := started()
	for _, program := range []string{"kubelet", "containerd"} {
		pid := nodeProcess(t, program)
		if pid == 0 { // which would be this test itself, to kill
			t.Fatalf("%s does not run", program)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatalf("killing %s, %d: %v", program, pid, err)
		}
		eventually(t, time.Minute, "another "+program, func() error {
			if now := nodeProcess(t, program); now == 0 || now == pid {
				return fmt.Errorf("it is %d, as before", now)
			}
			return nil
		})
	}
	replaceScheduler(t)
	if after := started(); after != before {
		t.Errorf("etcd was started again at %s", after)
	}
}

func destroy(t *testing.T) {
	start := time.Now()
	run(t, 3*time.Minute, "hypershift", "destroy", "cluster", "local", "--name", "demo", kubeconfigFlag())
	t.Logf("destroy took %s", time.Since(start).Round(time.Second))
	for _, kind := range []string{"hostedclusters,hostedcontrolplanes,nodepools", "machines,machinesets,machinedeployments,localmachines", "persistentvolumes"} {
		eventually(t, time.Minute, "no "+kind, func() error {
			if out, err := management().try(t, "get", kind, "-A", "-o", "name"); err != nil || strings.TrimSpace(out) != "" {
				return errors.Join(fmt.Errorf("left: %s", out), err)
			}
			return nil
		})
	}
	expectGone(t, "demo")
}

// logState prints what a person would look at first.
func logState(t *testing.T) {
	for _, args := range [][]string{
		{"get", "hostedclusters", "-A", "-o", "yaml"}, {"get", "controlplanecomponents", "-A"}, {"get", "pods", "-A", "-o", "wide"},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
	} {
		out, _ := management().try(t, args...)
		t.Logf("kubectl %s:\n%s", strings.Join(args, " "), out)
	}
}
