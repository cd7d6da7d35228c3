//go:build e2e && migration

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// moveTime is how long a move may take on a busy machine.
	moveTime = 8 * time.Minute
	// askEvery is how often the clients of the hosted cluster call.
	askEvery = 100 * time.Millisecond
)

// TestMigration moves a hosted cluster with workers and a workload from standard Cluster API types to private ones and back, while clients of both
// its API and its workload call all the time.
func TestMigration(t *testing.T) {
	noCluster(t)
	m := &moving{}
	inOrder(t, []step{
		{"When standard types are installed a hosted cluster should have two workers and an application", m.standard},
		{"When private types are installed the cluster should stay where it is", m.privateBeside},
		{"When it is moved no worker should notice, and no client", m.forward},
		{"When it has moved it should scale", m.scales},
		{"When a worker is lost another should take its place", m.heals},
		{"When the configuration of its workers changes they should be replaced one after the other", m.rolls},
		{"When it is moved back no worker should notice, and no client", m.back},
		{"When it is moved again no worker should notice, and no client", m.again},
		{"When it is destroyed nothing should be left", func(t *testing.T) {
			run(t, 5*time.Minute, "hypershift", "destroy", "cluster", "local", "--name", oldCluster, kubeconfigFlag())
			expectGone(t, oldCluster)
		}},
	})
}

type moving struct{ hosted kubectl }

func (m *moving) standard(t *testing.T) {
	run(t, 25*time.Minute, "hypershift", "local", "up", "--state-dir", stateDir, "--skip-install", "--skip-demo")
	if out, err := install(t, "--private-capi-types=false"); err != nil {
		t.Fatalf("install: %v\n%s", err, out)
	}
	run(t, workersStart, "hypershift", "create", "cluster", "local", "--name", oldCluster, "--release-image", releaseImage, "--node-pool-replicas", "2", "--auto-repair",
		"--wait", kubeconfigFlag())
	m.hosted = hostedKubectl(t, oldCluster)
	awaitNodes(t, m.hosted, 2)
	m.hosted.run(t, "apply", "-f", filepath.Join(root(t), "docs/examples/webapp.yaml"))
	eventually(t, appStart, "the application", func() error {
		got, err := m.hosted.try(t, "get", "deployment", "webapp", "-o", "jsonpath={.status.availableReplicas}")
		if err != nil || got != "2" {
			return errors.Join(fmt.Errorf("%q of 2 replicas are available", got), err)
		}
		return nil
	})
}

func (m *moving) privateBeside(t *testing.T) {
	if out, err := install(t, "--private-capi-types"); err != nil {
		t.Fatalf("install: %v\n%s", err, out)
	}
	management().run(t, "rollout", "status", "-n", "hypershift", "deployment/operator-legacy", "--timeout=120s")
	m.condition(t, "PrivateCAPITypes", "False")
}

func (m *moving) condition(t *testing.T, condition, want string) {
	t.Helper()
	eventually(t, moveTime, condition+"="+want, func() error {
		got, err := management().try(t, "get", "hostedcluster", "-n", "clusters", oldCluster, "-o", fmt.Sprintf(`jsonpath={.status.conditions[?(@.type=='%s')]}`, condition))
		if err != nil || !strings.Contains(got, `"status":"`+want+`"`) {
			return errors.Join(fmt.Errorf("it is %s", got), err)
		}
		return nil
	})
}

// workers are the pods that machines are, with what a restart would change.
func (m *moving) workers(t *testing.T) string {
	t.Helper()
	return management().run(t, "get", "pods", "-n", "clusters-"+oldCluster, "-l", "cluster.x-k8s.io/cluster-name", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.startTime} {.status.containerStatuses[0].restartCount};{end}`)
}

// move asks for a move and waits for its end, with clients that call all the time.
func (m *moving) move(t *testing.T, ask string, private bool) {
	before, clients, o := m.workers(t), m.call(t), m.observe(t)
	management().run(t, "annotate", "hostedcluster", "-n", "clusters", oldCluster, "hypershift.openshift.io/migration-failed-", ask+"=true")
	want := map[bool]string{true: "True", false: "False"}[private]
	m.condition(t, "PrivateCAPITypes", want)
	eventually(t, moveTime, "the end of the move", func() error {
		got, err := management().try(t, "get", "hostedcluster", "-n", "clusters", oldCluster, "-o",
			`jsonpath={.metadata.annotations.hypershift\.openshift\.io/migration-in-progress}{.status.conditions[?(@.type=="PrivateCAPIMigrationProgressing")]}`)
		if err != nil || strings.HasPrefix(got, "true") || !strings.Contains(got, `"reason":"Completed"`) {
			return errors.Join(errors.New(got), err)
		}
		return nil
	})
	clients.expectNoFailure(t)
	o.expectFine(t)
	t.Log(management().run(t, "get", "hostedcluster", "-n", "clusters", oldCluster, "-o", `jsonpath={.status.conditions[?(@.type=="PrivateCAPIMigrationProgressing")].message}`))
	if after := m.workers(t); after != before {
		t.Errorf("workers were %s, are %s", before, after)
	}
	standard, stored := machinesIn(t, standardGroup, oldCluster), machinesIn(t, privateGroup, oldCluster)
	if private && (standard != "" || stored == "") || !private && (standard == "" || stored != "") {
		t.Errorf("machines are %q in standard types, %q in private ones", standard, stored)
	}
}

func (m *moving) forward(t *testing.T) {
	m.move(t, "hypershift.openshift.io/private-capi-migrate", true)
}

func (m *moving) again(t *testing.T) { m.move(t, "hypershift.openshift.io/private-capi-migrate", true) }

func (m *moving) back(t *testing.T) {
	m.move(t, "hypershift.openshift.io/private-capi-rollback", false)
}

func (m *moving) scales(t *testing.T) {
	management().run(t, "scale", "nodepool", "-n", "clusters", oldCluster, "--replicas=3")
	awaitNodes(t, m.hosted, 3)
	management().run(t, "scale", "nodepool", "-n", "clusters", oldCluster, "--replicas=2")
	awaitNodes(t, m.hosted, 2)
}

// heals takes a worker away, as its host would when it burns down.
func (m *moving) heals(t *testing.T) {
	names := m.nodes(t)
	management().run(t, "delete", "pod", "-n", "clusters-"+oldCluster, "--wait=false", "--grace-period=0", "--force", names[0])
	// Its health check would wait for eight minutes.
	management().run(t, "annotate", "machines."+privateGroup, "-n", "clusters-"+oldCluster, names[0], "cluster.x-k8s.io/remediate-machine=")
	m.expectOthers(t, names[:1])
}

// rolls changes what workers are configured with.
func (m *moving) rolls(t *testing.T) {
	names := m.nodes(t)
	management().applyYAML(t, movedConfig)
	management().run(t, "patch", "nodepool", "-n", "clusters", oldCluster, "--type=merge", "-p", `{"spec":{"config":[{"name":"moved"}]}}`)
	m.expectOthers(t, names)
	// Requests fail while what answers them is replaced; clients of the next move find all of it there.
	eventually(t, appStart, "the application", func() error {
		got, err := m.hosted.try(t, "get", "deployment", "webapp", "-o", "jsonpath={.status.availableReplicas}")
		if err != nil || got != "2" {
			return errors.Join(fmt.Errorf("%q of 2 replicas are available", got), err)
		}
		return nil
	})
}

const movedConfig = `
apiVersion: v1
kind: ConfigMap
metadata: {name: moved, namespace: clusters}
data:
  config: |
    apiVersion: machineconfiguration.openshift.io/v1
    kind: MachineConfig
    metadata: {name: 99-moved}
    spec:
      config:
        ignition: {version: 3.2.0}
        storage:
          files:
          - {path: /etc/moved, mode: 420, contents: {source: "data:,moved"}}
`

func (m *moving) nodes(t *testing.T) []string {
	t.Helper()
	return strings.Fields(m.hosted.run(t, "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
}

// expectOthers waits for two Ready workers that are none of those named.
func (m *moving) expectOthers(t *testing.T, gone []string) {
	t.Helper()
	eventually(t, 2*workersStart, "other workers", func() error {
		now, err := m.hosted.try(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}`)
		nodes := strings.Fields(now)
		old := slices.ContainsFunc(nodes, func(node string) bool {
			name, _, _ := strings.Cut(node, "=")
			return slices.Contains(gone, name) || !strings.HasSuffix(node, "=True")
		})
		if err != nil || old || len(nodes) != 2 {
			return errors.Join(fmt.Errorf("nodes are %v, two Ready ones without %v are wanted", nodes, gone), err)
		}
		return nil
	})
}

// clients call the API of the hosted cluster and its application, and count what fails. They try no call twice.
type clients struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup
	mu     sync.Mutex
	calls  map[string]int
	failed []string
}

func (m *moving) call(t *testing.T) *clients {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", m.hosted.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Timeout = -1, 10*time.Second
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := &clients{cancel: cancel, calls: map[string]int{}}
	t.Cleanup(c.stop)
	c.loop(ctx, "API", func() error {
		_, err := api.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
	for _, address := range workerAddresses(t, m.hosted) {
		c.loop(ctx, address, func() error { return expectHello(ask(ctx, "http://"+address+":"+webappPort+"/")) })
	}
	return c
}

func (c *clients) loop(ctx context.Context, name string, call func() error) {
	c.ended.Go(func() {
		ticker := time.NewTicker(askEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			err := call()
			if ctx.Err() != nil {
				return
			}
			c.mu.Lock()
			c.calls[name]++
			if err != nil {
				c.failed = append(c.failed, fmt.Sprintf("%s %s: %v", time.Now().Format(time.TimeOnly), name, err))
			}
			c.mu.Unlock()
		}
	})
}

func (c *clients) stop() {
	c.cancel()
	c.ended.Wait()
}

func (c *clients) expectNoFailure(t *testing.T) {
	t.Helper()
	c.stop()
	t.Logf("calls: %v, failed: %d", c.calls, len(c.failed))
	for _, f := range c.failed[:min(len(c.failed), 10)] {
		t.Error(f)
	}
}
