//go:build e2e && sizes

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// crowdTime is for one control plane more, on a machine that runs nine.
	crowdTime = 6 * time.Minute
	// crowdAsks is how often each client asks on one connection, and crowdCalls how often on a new one.
	crowdAsks, crowdCalls = 100, 20
)

// lessForAll lets ten control planes fit on a machine with two processors.
var lessForAll = []string{
	"resource-request-override.hypershift.openshift.io/etcd.etcd=cpu=20m,memory=128Mi",
	"resource-request-override.hypershift.openshift.io/kube-apiserver.kube-apiserver=cpu=20m,memory=512Mi",
	"resource-request-override.hypershift.openshift.io/kube-controller-manager.kube-controller-manager=cpu=5m",
}

// crowded are the hosted clusters beside those of the other steps, as many as CLUSTERS asks for in all.
func crowded() (names []string) {
	count, _ := strconv.Atoi(os.Getenv("CLUSTERS"))
	for i := len(sized); i < count; i++ {
		names = append(names, fmt.Sprintf("crowd%d", i+1))
	}
	return names
}

// crowd adds hosted clusters without workers, until there are CLUSTERS, and has clients of all of them ask by name, at one address and at the same time; and then while one goes.
func crowd(t *testing.T) {
	more := crowded()
	if len(more) == 0 {
		t.Skip("CLUSTERS asks for no more hosted clusters than there are")
	}
	m := management()
	makeRoom(t)
	start := time.Now()
	release := m.run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", "jsonpath={.spec.release.image}")
	secret := filepath.Join(t.TempDir(), "pull-secret.json")
	if err := os.WriteFile(secret, []byte(`{"auths":{"registry.example.com":{"auth":"dTpw"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range more {
		args := []string{"create", "cluster", "none", "--name", name, "--release-image", release, "--pull-secret", secret, "--external-api-server-address", nodeOf, "--node-pool-replicas=-1", kubeconfigFlag()}
		for _, annotation := range lessForAll {
			args = append(args, "--annotations", annotation)
		}
		run(t, sizesTime, "hypershift", args...)
		m.run(t, "patch", "hostedcluster", "-n", "clusters", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"kubeAPIServerDNSName":%q}}`, fleetHost(name)))
		eventually(t, crowdTime, "hosted cluster "+name, func() error { return available(t, name) })
		hostedKubectl(t, name)
	}
	ip, all := endpoint(t), slices.Concat(sized, more)
	findings = append(findings, fmt.Sprintf("%d hosted clusters more were there after %s, one after the other", len(more), time.Since(start).Round(time.Second)))
	var clients []*crowdClient
	for _, name := range all {
		clients = append(clients, newCrowdClient(t, ip, name))
	}
	for _, c := range clients {
		eventually(t, sizesTime, c.cluster+" by its name", func() error { return c.ask(t.Context(), true) })
	}
	for _, way := range []struct {
		what  string
		count int
		keep  bool
	}{{"on one connection each", crowdAsks, true}, {"on a new connection each time", crowdCalls, false}} {
		took := together(t, clients, way.count, way.keep)
		findings = append(findings, fmt.Sprintf("%d hosted clusters at one address, clients of all at the same time, %s: %d requests, each answered by its own, median %s, 99%% within %s",
			len(all), way.what, len(took), took[len(took)/2].Round(time.Millisecond), took[len(took)*99/100].Round(time.Millisecond)))
	}
	oneGoes(t, ip, more[len(more)-1], clients[:len(clients)-1])
}

// makeRoom has those that are there ask for less, and takes the workers away.
func makeRoom(t *testing.T) {
	m := management()
	m.run(t, "patch", "nodepool", "-n", "clusters", "demo", "--type=merge", "-p", `{"spec":{"replicas":0}}`)
	for _, name := range sized {
		m.run(t, append([]string{"annotate", "hostedcluster", "-n", "clusters", name, "--overwrite"}, lessForAll...)...)
	}
	eventually(t, sizesTime, "an end of the workers", func() error {
		if left := m.run(t, "get", "pods", "-n", "clusters-demo", "-l", "infrastructure.cluster.x-k8s.io/local-machine", "-o", "name"); left != "" {
			return errors.New(left)
		}
		return nil
	})
	for _, name := range sized {
		eventually(t, crowdTime, name+" with less", func() error {
			got := m.run(t, "get", "statefulset", "-n", "clusters-"+name, "etcd", "-o", `jsonpath={.spec.template.spec.containers[?(@.name=="etcd")].resources.requests.cpu}`)
			if got != "20m" {
				return fmt.Errorf("its etcd asks for %q", got)
			}
			return available(t, name)
		})
	}
}

// together has all clients ask at the same time, and returns how long each answer took, sorted.
func together(t *testing.T, clients []*crowdClient, count int, keep bool) (took []time.Duration) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, c := range clients {
		group.Go(func() {
			for range count {
				start := time.Now()
				if err := c.ask(t.Context(), keep); err != nil {
					t.Errorf("%s: %v", c.cluster, err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(start))
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	slices.Sort(took)
	return took
}

// oneGoes destroys a hosted cluster while clients of the others ask on connections that they have, and on new ones: none may fail.
func oneGoes(t *testing.T, ip, name string, clients []*crowdClient) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	var group sync.WaitGroup
	var failed []error
	asked := 0
	for _, c := range clients {
		for _, keep := range []bool{true, false} {
			group.Go(func() {
				for ctx.Err() == nil {
					err := c.ask(t.Context(), keep)
					mu.Lock()
					asked++
					if err != nil {
						failed = append(failed, fmt.Errorf("%s: %w", c.cluster, err))
					}
					mu.Unlock()
					select { // a client that asks all the time would take the processors from what it asks
					case <-ctx.Done():
					case <-time.After(100 * time.Millisecond):
					}
				}
			})
		}
	}
	run(t, sizesTime, "hypershift", "destroy", "cluster", "none", "--name", name, kubeconfigFlag())
	eventually(t, sizesTime, "an end of "+name+" at the endpoint", func() error {
		if _, err := through(t, ip, name, "get", "--raw", "/version"); err == nil {
			return errors.New("it still answers")
		}
		return nil
	})
	stop()
	group.Wait()
	if len(failed) > 0 {
		t.Errorf("%d of %d requests of the others failed: %v", len(failed), asked, errors.Join(failed[:min(len(failed), 5)]...))
	}
	findings = append(findings, fmt.Sprintf("while a hosted cluster was destroyed the others had %d requests, and %d failed", asked, len(failed)))
}

// crowdClient asks the API server of one hosted cluster, by its name, at an address.
type crowdClient struct {
	cluster, address, uid string
	kept, fresh           *http.Client
}

// credentials are those of a hosted cluster's kubeconfig, and the address in it.
func credentials(t *testing.T, cluster string) (config *tls.Config, address string) {
	k := kubectl{filepath.Join(stateDir, cluster+".kubeconfig")}
	field := func(path string) []byte {
		raw, err := base64.StdEncoding.DecodeString(k.run(t, "config", "view", "--raw", "-o", "jsonpath={"+path+"}"))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	pair, err := tls.X509KeyPair(field(".users[0].user.client-certificate-data"), field(".users[0].user.client-key-data"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(field(".clusters[0].cluster.certificate-authority-data"))
	address = strings.TrimPrefix(k.run(t, "config", "view", "-o", "jsonpath={.clusters[0].cluster.server}"), "https://")
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, address
}

// clientFor asks for a name, whatever address it calls.
func clientFor(config *tls.Config, name string, keep bool) *http.Client {
	config = config.Clone()
	config.ServerName = name
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: !keep, ForceAttemptHTTP2: true, TLSClientConfig: config}}
}

func newCrowdClient(t *testing.T, ip, cluster string) *crowdClient {
	config, _ := credentials(t, cluster)
	c := &crowdClient{cluster: cluster, address: ip + ":443", kept: clientFor(config, fleetHost(cluster), true), fresh: clientFor(config, fleetHost(cluster), false)}
	c.uid = kubectl{filepath.Join(stateDir, cluster+".kubeconfig")}.run(t, "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
	t.Cleanup(c.kept.CloseIdleConnections)
	return c
}

// ask fails when no answer comes, or another cluster's.
func (c *crowdClient) ask(ctx context.Context, keep bool) error {
	client := c.kept
	if !keep {
		client = c.fresh
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+c.address+"/api/v1/namespaces/kube-system", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), c.uid) {
		return fmt.Errorf("it answers %s: %.200s", resp.Status, body)
	}
	return nil
}
