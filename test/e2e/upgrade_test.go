//go:build e2e && upgrade

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The releases of the upgrade. The older one is built for this test only.
const (
	oldVersion = "1.35.4"
	newVersion = "1.36.3"
	releases   = "10.244.0.1:5000/hypershift/release:"
)

// TestUpgrade takes a highly available hosted cluster from one minor of Kubernetes to the next, under the eyes of a client.
func TestUpgrade(t *testing.T) {
	noCluster(t)
	u := &upgrade{}
	inOrder(t, []step{
		{"When up runs with an older release it should build that, too", u.up},
		{"When a highly available cluster is made of the older release it should come up", u.create},
		{"When one of three etcd members is lost a client should hardly notice", u.loseMember},
		{"When certificates are about to expire they should be replaced without an outage", u.rotate},
		{"When the encryption key changes everything should be encrypted with the new one", u.changeKey},
		{"When the release image changes the control plane should roll without an outage", u.roll},
		{"When the upgrade is over versions, history and data should be right", u.check},
		{"When the cluster is destroyed it should go", u.destroy},
	})
}

// upgrade is the cluster under test.
type upgrade struct{ kubeconfig string }

func (u *upgrade) hosted() kubectl { return kubectl{u.kubeconfig} }

func (u *upgrade) up(t *testing.T) {
	start := time.Now()
	run(t, 40*time.Minute, "hypershift", "local", "up", "--state-dir", stateDir, "--skip-demo", "--with-release", oldVersion)
	t.Logf("up took %s", time.Since(start).Round(time.Second))
}

func (u *upgrade) create(t *testing.T) {
	start := time.Now()
	run(t, 20*time.Minute, "hypershift", "create", "cluster", "local", "--name", "ha", "--release-image", releases+oldVersion,
		"--control-plane-availability-policy", "HighlyAvailable", kubeconfigFlag(), "--wait", "--timeout", "18m")
	t.Logf("create took %s", time.Since(start).Round(time.Second))
	u.kubeconfig = hostedKubectl(t, "ha").kubeconfig
	k := u.hosted()
	if got := serverVersion(t, k); got != "v"+oldVersion {
		t.Fatalf("the hosted API is of %s, want v%s", got, oldVersion)
	}
	k.run(t, "create", "configmap", "kept", "--from-literal=answer=42")
	k.run(t, "create", "secret", "generic", "hidden", "--from-literal=token=kept-too")
}

func (u *upgrade) loseMember(t *testing.T) {
	calls := startCaller(t, u.kubeconfig)
	management().run(t, "delete", "pod", "-n", "clusters-ha", "etcd-1", "--grace-period=0", "--force")
	eventually(t, 5*time.Minute, "three etcd members", func() error {
		got, err := management().try(t, "get", "statefulset", "-n", "clusters-ha", "etcd", "-o", "jsonpath={.status.readyReplicas}")
		if err != nil || strings.TrimSpace(got) != "3" {
			return fmt.Errorf("%s of 3 are ready (%v)", got, err)
		}
		return nil
	})
	calls.expectNoOutage(t, "loss of an etcd member")
}

func (u *upgrade) roll(t *testing.T) {
	calls := startCaller(t, u.kubeconfig)
	order := watchVersions(t)
	start := time.Now()
	management().run(t, "patch", "hostedcluster", "-n", "clusters", "ha", "--type=merge", "-p", `{"spec":{"release":{"image":"`+releases+newVersion+`"}}}`)
	eventually(t, 20*time.Minute, "the upgrade", func() error {
		got, err := management().try(t, "get", "hostedcluster", "-n", "clusters", "ha", "-o",
			`jsonpath={.status.version.history[0].version} {.status.version.history[0].state} {.status.conditions[?(@.type=="Progressing")].status}`)
		if want := newVersion + " Completed False"; err != nil || strings.TrimSpace(got) != want {
			return fmt.Errorf("version, state and Progressing are %q, want %q (%v)", got, want, err)
		}
		return nil
	})
	t.Logf("the upgrade took %s", time.Since(start).Round(time.Second))
	calls.expectNoOutage(t, "upgrade")

	// What talks to the API may be older than it, never newer: nobody goes before kube-apiserver.
	first := order.stop()
	t.Logf("components at %s, in this order: %s", newVersion, strings.Join(first, ", "))
	api := slices.Index(first, "kube-apiserver")
	for _, later := range []string{"kube-controller-manager", "kube-scheduler"} {
		if at := slices.Index(first, later); api < 0 || at < api {
			t.Errorf("%s was at %s before kube-apiserver, or one of them never was: %v", later, newVersion, first)
		}
	}
}

func (u *upgrade) check(t *testing.T) {
	k := u.hosted()
	if got := serverVersion(t, k); got != "v"+newVersion {
		t.Errorf("the hosted API is of %s, want v%s", got, newVersion)
	}
	if got := k.run(t, "get", "configmap", "kept", "-o", "jsonpath={.data.answer}"); got != "42" {
		t.Errorf("the ConfigMap from before says %q, want 42", got)
	}
	if got := k.run(t, "get", "secret", "hidden", "-o", "jsonpath={.data.token}"); got == "" {
		t.Errorf("the Secret from before is empty")
	}
	history := management().run(t, "get", "hostedcluster", "-n", "clusters", "ha", "-o",
		`jsonpath={range .status.version.history[*]}{.version}={.state} {end}`)
	if want := newVersion + "=Completed " + oldVersion + "=Completed"; history != want {
		t.Errorf("history is %q, want %q", history, want)
	}
	for condition, want := range map[string]string{"Available": "True", "Progressing": "False", "Degraded": "False", "ClusterVersionSucceeding": "True"} {
		got := management().run(t, "get", "hostedcluster", "-n", "clusters", "ha", "-o", fmt.Sprintf("jsonpath={.status.conditions[?(@.type=='%s')].status}", condition))
		if got != want {
			t.Errorf("%s is %q, want %s", condition, got, want)
		}
	}
	// Those of before serve their clients to the end, up to two minutes.
	eventually(t, 4*time.Minute, "three API servers", func() error {
		pods, err := management().try(t, "get", "pods", "-n", "clusters-ha", "-l", "app=kube-apiserver", "-o", "jsonpath={.items[*].metadata.name}")
		if n := len(strings.Fields(pods)); err != nil || n != 3 {
			return errors.Join(fmt.Errorf("%d run: %s", n, pods), err)
		}
		return nil
	})
}

func (u *upgrade) destroy(t *testing.T) {
	run(t, 5*time.Minute, "hypershift", "destroy", "cluster", "local", "--name", "ha", kubeconfigFlag())
}

func serverVersion(t testing.TB, k kubectl) string {
	t.Helper()
	var version struct{ GitVersion string }
	if err := json.Unmarshal([]byte(k.run(t, "get", "--raw", "/version")), &version); err != nil {
		t.Fatal(err)
	}
	return version.GitVersion
}

// versionOrder notes in which order components reach the new version.
type versionOrder struct {
	done, ended chan struct{}
	once        sync.Once
	order       []string
}

func watchVersions(t *testing.T) *versionOrder {
	o := &versionOrder{done: make(chan struct{}), ended: make(chan struct{})}
	t.Cleanup(func() { o.stop() })
	look := func() {
		out, err := management().try(t, "get", "controlplanecomponents", "-n", "clusters-ha", "-o",
			`jsonpath={range .items[*]}{.metadata.name}={.status.version} {end}`)
		for pair := range strings.FieldsSeq(out) {
			name, version, _ := strings.Cut(pair, "=")
			if err == nil && version == newVersion && !slices.Contains(o.order, name) {
				o.order = append(o.order, name)
			}
		}
	}
	go func() {
		defer close(o.ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			look()
			select {
			case <-o.done:
				look() // what came last came just before the end
				return
			case <-ticker.C:
			}
		}
	}()
	return o
}

// stop ends the watch and returns the names.
func (o *versionOrder) stop() []string {
	o.once.Do(func() { close(o.done) })
	<-o.ended
	return o.order
}
