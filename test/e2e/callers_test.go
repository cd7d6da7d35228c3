//go:build e2e && live

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

const (
	// unmissed is a highly available hosted cluster, all of whose authorities are replaced.
	unmissed          = "unmissed"
	unmissedNamespace = "clusters-unmissed"
	// highlyTime is for three etcd members and three API servers, which start anew one after the other, twice, on a machine that others use.
	highlyTime = 20 * time.Minute
	// unmissedTimeout is what a request may take: as long as the longest silence that is allowed, so that a busy machine makes none fail, and less than a
	// client would wait that is told to come back in five seconds.
	unmissedTimeout = longestSilence
	// logsTimeout is what reading logs may take: an API server that has just started waits until its tunnel has an agent.
	logsTimeout = 20 * time.Second
	// rereadEvery is how often a client looks whether its kubeconfig is another one.
	rereadEvery = time.Second
)

// TestAuthoritiesUnmissed replaces every authority of a highly available hosted cluster under the eyes of four clients, of whose requests none may
// fail, but for writes that reach etcd while it has no leader (see handovers). One client reads its kubeconfig again all the time, one keeps that which
// trusts both authorities, one reads logs through the tunnel, and one is a pod of the hosted cluster. The test makes the cluster itself, in
// "hypershift local up --state-dir /tmp/hcp-e2e --skip-demo".
func TestAuthoritiesUnmissed(t *testing.T) {
	m := management()
	t.Cleanup(func() {
		run(t, 5*time.Minute, "hypershift", "destroy", "cluster", "local", "--name", unmissed, kubeconfigFlag())
	})
	start := time.Now()
	run(t, 20*time.Minute, "hypershift", "create", "cluster", "local", "--name", unmissed, "--release-image", releaseOfUp(),
		"--control-plane-availability-policy", "HighlyAvailable", "--node-pool-replicas", "1", kubeconfigFlag(), "--wait", "--timeout", "18m")
	t.Logf("create took %s", time.Since(start).Round(time.Second))
	// Successors then sign after three minutes, not after an hour.
	m.run(t, "annotate", "hostedcluster", "-n", "clusters", unmissed, "--overwrite", "hypershift.openshift.io/certificate-validity=30m")
	k := hostedKubectl(t, unmissed)
	eventually(t, authoritiesTime, "a Ready worker", func() error {
		got, err := k.try(t, "get", "nodes", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`)
		if err != nil || got != "True" {
			return errors.Join(fmt.Errorf("Ready is %q", got), err)
		}
		return nil
	})
	awaitRollouts(t, unmissedNamespace, authoritiesTime)
	reader := rereads(t, unmissed)
	etcd := watchHandovers(t, unmissedNamespace, 3)

	start = time.Now()
	run(t, time.Minute, "hypershift", "rotate", "authorities", unmissed, kubeconfigFlag())
	eventually(t, authoritiesTime, "both authorities in the kubeconfig, and in what pods are told", func() error {
		if n := generations(t, unmissedNamespace, "root-ca"); n < 2 {
			return fmt.Errorf("root-ca has %d generations", n)
		}
		told, err := k.try(t, "get", "configmap", "kube-root-ca.crt", "-o", `jsonpath={.data.ca\.crt}`)
		if n := strings.Count(told, "BEGIN CERTIFICATE"); err != nil || n < 2 {
			return errors.Join(fmt.Errorf("pods are told %d authorities", n), err)
		}
		return nil
	})
	t.Logf("both authorities are trusted after %s", time.Since(start).Round(time.Second))
	k = hostedKubectl(t, unmissed)
	k.applyYAML(t, callerPod) // it reads its bundle once, when it starts
	content, err := os.ReadFile(k.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	keeper, _ := callBy(t, content, unmissedTimeout)
	tunnel := readsLogs(t, content)
	said := ""
	eventually(t, highlyTime, "all authorities to be replaced", func() error {
		if told := rolling(t); told != said {
			said = told
			t.Logf("%s: %s", time.Since(start).Round(time.Second), told)
		}
		return allReplaced(t, unmissedNamespace)
	})
	t.Logf("all have successors that sign after %s", time.Since(start).Round(time.Second))
	awaitRollouts(t, unmissedNamespace, highlyTime)
	awaitEnds(t)
	t.Logf("all is over after %s", time.Since(start).Round(time.Second))
	t.Log(etcd)
	reader.expectNoneBut(t, "a client that reads its kubeconfig again", etcd)
	keeper.expectNoneBut(t, "a client that trusts both", etcd)
	tunnel.stop()
	logs := tunnel.kinds["logs"]
	t.Logf("a client that reads logs through the tunnel: calls: %d, failed: %d, longest time without an answer: %s", logs.calls, logs.failures, logs.silence.Round(time.Millisecond))
	if logs.calls == 0 || logs.failures > 0 {
		t.Errorf("%d of %d reads of a pod's logs failed, and none may: %s", logs.failures, logs.calls, strings.Join(tunnel.samples, "; "))
	}
	poll := k.run(t, "logs", "caller", "--tail=-1")
	lines := strings.Split(poll, "\n")
	t.Logf("a pod: %s", lines[len(lines)-1])
	if !strings.HasSuffix(lines[len(lines)-1], ", 0 failed") {
		t.Errorf("requests of a pod failed:\n%s", strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
}

// rolling names the components that are not rolled out, and what nodes are waited for.
func rolling(t *testing.T) string {
	t.Helper()
	out, err := management().try(t, "get", "controlplanecomponents", "-n", unmissedNamespace, "-o",
		`jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="RolloutComplete")].status} {end}`)
	if err != nil {
		return out
	}
	var waits []string
	for pair := range strings.FieldsSeq(out) {
		if name, status, _ := strings.Cut(pair, "="); status != "True" {
			waits = append(waits, name)
		}
	}
	nodes := management().run(t, "get", "hostedcluster", "-n", "clusters", unmissed, "-o", `jsonpath={.status.conditions[?(@.type=="NodesTrustAuthorities")].message}`)
	return fmt.Sprintf("rolling out: %s; nodes: %s", strings.Join(waits, ", "), nodes)
}

// awaitEnds waits until the API servers of before have ended, which serve their clients for up to two minutes.
func awaitEnds(t *testing.T) {
	t.Helper()
	eventually(t, authoritiesTime, "three API servers", func() error {
		pods, err := management().try(t, "get", "pods", "-n", unmissedNamespace, "-l", "app=kube-apiserver", "-o", "jsonpath={.items[*].metadata.name}")
		if n := len(strings.Fields(pods)); err != nil || n != 3 {
			return errors.Join(fmt.Errorf("%d run: %s", n, pods), err)
		}
		return nil
	})
}

// readsLogs starts a client that reads the last line of the caller's logs all the time: through any API server, the tunnel and the kubelet.
func readsLogs(t *testing.T, kubeconfig []byte) *caller {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Timeout = -1, logsTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	read := func(ctx context.Context) error {
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).GetLogs("caller", &corev1.PodLogOptions{TailLines: ptr.To[int64](1)}).DoRaw(ctx)
		return err
	}
	eventually(t, time.Minute, "logs of the caller", func() error { return read(t.Context()) })
	ctx, cancel := context.WithCancel(context.Background())
	c := &caller{cancel: cancel, kinds: map[string]*figures{}}
	t.Cleanup(c.stop)
	c.loop(ctx, "logs", func(ctx context.Context, _ int) error { return read(ctx) })
	return c
}

// rereads starts a client that goes on with the kubeconfig that is published, whenever it is another one.
func rereads(t *testing.T, name string) *caller {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", management().kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	read := func() ([]byte, error) {
		s, err := client.CoreV1().Secrets("clusters").Get(t.Context(), name+"-admin-kubeconfig", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return s.Data["kubeconfig"], nil
	}
	have, err := read()
	if err != nil {
		t.Fatal(err)
	}
	c, now := callBy(t, have, unmissedTimeout)
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(rereadEvery)
		defer ticker.Stop()
		for {
			select {
			case <-t.Context().Done():
				return
			case <-ticker.C:
			}
			published, err := read()
			if err != nil || bytes.Equal(published, have) {
				continue // the next look tells
			}
			if other, err := configMapsOf(published, unmissedTimeout); err == nil {
				have = published
				now.Store(other)
			}
		}
	})
	t.Cleanup(done.Wait)
	return c
}
