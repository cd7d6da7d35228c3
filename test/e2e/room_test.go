//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// roomy is what a control plane of one replica on platform None asks for at most, in thousandths of a processor, with what is kept for
	// a rollout: one that is made too many waits, which is what the test is for.
	roomy = 800
	// roomStart is how long control planes that start together may take, on a busy machine, too.
	roomStart = 5 * time.Minute
)

// moreThanFits makes more hosted clusters at once than there is room for: nothing is taken from the demo cluster, those that fit come up, the
// others say why they wait and have nothing, the next starts when one goes, and all go.
func moreThanFits(t *testing.T) {
	before := podsOf(t)
	release := management().run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", "jsonpath={.spec.release.image}")
	// What is asked for by annotation makes three fit at most, whatever the machine has: etcd takes a share of what is free.
	free := freeCPU(t)
	if free < roomy {
		t.Fatalf("%d thousandths of a processor are free, which is too little for one control plane: end what else runs on this node", free)
	}
	etcd := fmt.Sprintf("resource-request-override.hypershift.openshift.io/etcd.etcd=cpu=%dm", max((free-roomy)/2, 300))
	// The registry here asks for no credentials; the platform's command does.
	secret := filepath.Join(t.TempDir(), "pull-secret.json")
	if err := os.WriteFile(secret, []byte(`{"auths":{"registry.example.com":{"auth":"dTpw"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range 3 {
		names = append(names, fmt.Sprintf("room%d", i))
	}
	for _, name := range names { // one after the other, so that it is known who came first
		run(t, time.Minute, "hypershift", "create", "cluster", "none", "--name", name, "--release-image", release, "--pull-secret", secret, "--annotations", etcd, "--node-pool-replicas=-1", kubeconfigFlag())
	}
	waiting := ""
	eventually(t, roomStart, "an answer for each", func() error {
		waiting = ""
		for _, name := range names {
			c := roomCondition(t, name, "ControlPlaneAdmitted")
			switch {
			case c.Status == "":
				return fmt.Errorf("%s has none yet", name)
			case c.Status == "False" && waiting == "":
				waiting = name
			case c.Status == "True" && waiting != "":
				return fmt.Errorf("%s overtook %s", name, waiting)
			case c.Status == "True":
				if a := roomCondition(t, name, "Available"); a.Status != "True" {
					return fmt.Errorf("%s is not available: %s", name, a.Message)
				}
			}
		}
		return nil
	})
	if waiting == "" || waiting == names[0] {
		t.Fatalf("of %v, %q is the first that waits; some should fit, and not all", names, waiting)
	}
	for _, kind := range []string{"ControlPlaneAdmitted", "Available", "Progressing"} {
		c := roomCondition(t, waiting, kind)
		if c.Reason != "WaitingForCapacity" || !strings.Contains(c.Message, "CPU is missing") || !strings.Contains(c.Message, "in the queue") {
			t.Errorf("%s of %s is %s: %s", kind, waiting, c.Reason, c.Message)
		}
	}
	t.Logf("%s: %s", waiting, roomCondition(t, waiting, "Available").Message)
	if out, err := management().try(t, "get", "namespace", "clusters-"+waiting); err == nil {
		t.Errorf("it has a namespace: %s", out)
	}
	sameAs(t, before)

	destroyTimed(t, names[0])
	eventually(t, roomStart, "the next to start", func() error {
		if c := roomCondition(t, waiting, "Available"); c.Status != "True" {
			return errors.New(c.Message)
		}
		return nil
	})
	var all sync.WaitGroup
	for _, name := range names[1:] {
		all.Go(func() { destroyTimed(t, name) })
	}
	all.Wait()
	for _, name := range names {
		expectGone(t, name)
	}
	sameAs(t, before)
}

// destroyTimed destroys a hosted cluster, and prints how long that took: twelve seconds are usual on a machine that nobody else uses. It may run beside others.
func destroyTimed(t *testing.T, name string) {
	start := time.Now()
	out, err := try(t, 5*time.Minute, "hypershift", "destroy", "cluster", "none", "--name", name, kubeconfigFlag())
	took := time.Since(start).Round(time.Second)
	t.Logf("destroying %s took %s", name, took)
	if err != nil {
		t.Errorf("destroying %s: %v\n%s", name, err, out)
	}
}

type conditionOf struct{ Status, Reason, Message string }

func roomCondition(t *testing.T, name, kind string) conditionOf {
	t.Helper()
	out, err := management().try(t, "get", "hostedcluster", "-n", "clusters", name, "-o", fmt.Sprintf(`jsonpath={.status.conditions[?(@.type=="%s")]}`, kind))
	c := conditionOf{}
	if err != nil || strings.TrimSpace(out) == "" {
		return c
	}
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatalf("condition %s of %s: %v: %s", kind, name, err, out)
	}
	return c
}

// podsOf are the pods of the demo cluster and the operators, as uid and restarts by name.
func podsOf(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, ns := range []string{"clusters-demo", "hypershift", "package-operator-system"} {
		out := management().run(t, "get", "pods", "-n", ns, "-o", `jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{" "}{.metadata.uid}/{.status.containerStatuses[*].restartCount}{"\n"}{end}`)
		for line := range strings.Lines(out) {
			name, state, _ := strings.Cut(strings.TrimSpace(line), " ")
			found[name] = state
		}
	}
	return found
}

func sameAs(t *testing.T, before map[string]string) {
	t.Helper()
	after := podsOf(t)
	for name, state := range before {
		if after[name] != state {
			t.Errorf("pod %s was %s and is %q", name, state, after[name])
		}
	}
}

// freeCPU is what no pod has asked for, in thousandths of a processor.
func freeCPU(t *testing.T) int64 {
	t.Helper()
	allocatable, err := resource.ParseQuantity(management().run(t, "get", "nodes", "-o", "jsonpath={.items[0].status.allocatable.cpu}"))
	if err != nil {
		t.Fatal(err)
	}
	free := allocatable.MilliValue()
	for request := range strings.FieldsSeq(management().run(t, "get", "pods", "-A", "--field-selector=status.phase=Running", "-o", "jsonpath={.items[*].spec.containers[*].resources.requests.cpu}")) {
		q, err := resource.ParseQuantity(request)
		if err != nil {
			t.Fatal(err)
		}
		free -= q.MilliValue()
	}
	return free
}
