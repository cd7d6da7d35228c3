//go:build e2e && sizes

package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// sizesTime is for an operator, a size, a control plane that is changed, or the pod of an API server.
	sizesTime = 8 * time.Minute
	// domain of the names by which API servers are reached at the shared endpoint.
	domain = "fleet.test"
	// asked is how often each way is measured.
	asked = 200
)

// sized are the hosted clusters, the first with two workers, and the others with none.
var sized = []string{"demo", "north", "south"}

func fleetHost(cluster string) string { return cluster + "." + domain }

// TestSizes is what a service of many hosted clusters has beside `make e2e`: sizes and what follows from them, one address for all API servers, and audit logs that outlive their pods.
func TestSizes(t *testing.T) {
	noCluster(t)
	inOrder(t, []step{
		{"When up runs and the operator is installed with sizes, a shared endpoint and volumes for audit logs it should start", installSized},
		{"When Pods wait for nodes Karpenter should make machines, and take them away with the Pods", autoNode},
		{"When two more hosted clusters come there should be room for them", moreClusters},
		{"When three hosted clusters are named each should be reached by its name at one address", byName},
		{"When a hosted cluster lets some networks in the endpoint should compare the address of the client", sourcesAreKept},
		{"When it is measured the endpoint should add little", latency},
		{"When sizes are given each hosted cluster should have the one of its nodes, and what follows from it", sizesFollow},
		{"When audit logs are kept a volume should outlive its pod", logsStay},
		{"When there are CLUSTERS hosted clusters each should be reached by its name at one address, also while one goes", crowd},
	})
	for _, f := range findings {
		t.Log("What was found: " + f)
	}
}

func installSized(t *testing.T) {
	run(t, 25*time.Minute, "hypershift", "local", "up", "--state-dir", stateDir)
	m := management()
	image := m.run(t, "get", "deployment", "-n", "hypershift", "operator", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	run(t, sizesTime, "hypershift", "install", "--hypershift-image", image, "--package-operator", "--limit-crd-install", "Local,None", "--wait-until-available",
		"--enable-size-tagging", "--shared-ingress", "--enable-audit-log-persistence", kubeconfigFlag())
	m.run(t, "rollout", "status", "-n", "hypershift-sharedingress", "deployment/router", "--timeout=50s")
}

// moreClusters makes the other hosted clusters, and gives all of them names.
func moreClusters(t *testing.T) {
	m := management()
	release := m.run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", "jsonpath={.spec.release.image}")
	for _, name := range sized[1:] {
		run(t, sizesTime, "hypershift", "create", "cluster", "local", "--name", name, "--release-image", release, "--external-api-server-address", nodeOf, "--node-pool-replicas", "0",
			"--annotations", lessForEtcd, kubeconfigFlag())
	}
	for _, name := range sized {
		m.run(t, "patch", "hostedcluster", "-n", "clusters", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"kubeAPIServerDNSName":%q}}`, fleetHost(name)))
	}
	for _, name := range sized {
		eventually(t, sizesTime, "hosted cluster "+name, func() error { return available(t, name) })
		hostedKubectl(t, name)
	}
}

// lessForEtcd lets two more control planes fit on a machine with two processors, beside the endpoint.
const lessForEtcd = "resource-request-override.hypershift.openshift.io/etcd.etcd=cpu=50m"

// nodeOf is where the management cluster's only node answers at node ports.
const nodeOf = "10.244.0.1"

func available(t *testing.T, name string) error {
	state := management().run(t, "get", "hostedcluster", "-n", "clusters", name, "-o", `jsonpath={range .status.conditions[?(@.status!="x")]}{.type}={.status} {end}`)
	for _, want := range []string{"Available=True", "Progressing=False"} {
		if !strings.Contains(" "+state, " "+want) {
			return fmt.Errorf("%s: not %s: %s", name, want, state)
		}
	}
	return nil
}

// endpoint is the address of the shared endpoint.
func endpoint(t *testing.T) string {
	ip := ""
	eventually(t, sizesTime, "an address of the shared endpoint", func() error {
		ip = management().run(t, "get", "service", "-n", "hypershift-sharedingress", "router", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
		if ip == "" {
			return errors.New("none yet")
		}
		return nil
	})
	return ip
}

// through asks the API server of a hosted cluster at the endpoint, with the credentials of its kubeconfig.
func through(t *testing.T, ip, cluster string, args ...string) (string, error) {
	k := kubectl{filepath.Join(stateDir, cluster+".kubeconfig")}
	return k.try(t, append([]string{"--server=https://" + ip + ":443", "--tls-server-name=" + fleetHost(cluster)}, args...)...)
}

func byName(t *testing.T) {
	ip := endpoint(t)
	for _, name := range sized {
		want := kubectl{filepath.Join(stateDir, name+".kubeconfig")}.run(t, "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
		eventually(t, sizesTime, name+" by its name", func() error {
			got, err := through(t, ip, name, "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
			if err != nil || strings.TrimSpace(got) != want {
				return fmt.Errorf("it is %q, want %s (%w)", got, want, err)
			}
			return nil
		})
	}
	if out, err := (kubectl{filepath.Join(stateDir, "demo.kubeconfig")}).try(t, "--server=https://"+ip+":443", "--tls-server-name=nobody."+domain, "get", "--raw", "/version"); err == nil {
		t.Errorf("a name of nobody is answered: %s", out)
	}
}

func sourcesAreKept(t *testing.T) {
	ip, m := endpoint(t), management()
	allow := func(networks string) {
		m.run(t, "patch", "hostedcluster", "-n", "clusters", "north", "--type=merge", "-p", `{"spec":{"networking":{"apiServer":{"allowedCIDRBlocks":`+networks+`}}}}`)
	}
	t.Cleanup(func() { allow("null") })
	version := func(name string) error {
		_, err := through(t, ip, name, "get", "--raw", "/version")
		return err
	}
	allow(`["192.0.2.0/24"]`)
	eventually(t, sizesTime, "strangers to be turned away", func() error {
		if version("north") == nil {
			return errors.New("they are let in")
		}
		return nil
	})
	if err := version("south"); err != nil {
		t.Errorf("a neighbour is turned away, too: %v", err)
	}
	// By which address this machine calls the endpoint.
	c, err := net.DialTimeout("tcp", ip+":443", 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	source, _, _ := net.SplitHostPort(c.LocalAddr().String())
	_ = c.Close()
	allow(fmt.Sprintf(`[%q]`, source+"/32"))
	eventually(t, sizesTime, "our own address, "+source+", to be let in", func() error { return version("north") })
	findings = append(findings, fmt.Sprintf("the endpoint sees the address of a client: %s", source))
}

// latency asks an API server directly and through the endpoint, one request after the other on one connection, and one connection after the other.
func latency(t *testing.T) {
	ip := endpoint(t)
	config, direct := credentials(t, "demo")
	measure := func(address, name string, again bool) time.Duration {
		c := clientFor(config, name, again)
		defer c.CloseIdleConnections()
		var took []time.Duration
		for range asked {
			start := time.Now()
			resp, err := c.Get("https://" + address + "/version")
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	host, _, err := net.SplitHostPort(direct)
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []struct {
		what  string
		again bool
	}{{"a request on a connection that is there", true}, {"a new connection with a request", false}} {
		a, b := measure(direct, host, way.again), measure(ip+":443", fleetHost("demo"), way.again)
		text := fmt.Sprintf("median of %d, %s: %s directly, %s through the shared endpoint, %s more", asked, way.what, a.Round(time.Microsecond), b.Round(time.Microsecond), (b - a).Round(time.Microsecond))
		t.Log(text)
		findings = append(findings, text)
	}
}

func sizesFollow(t *testing.T) {
	m := management()
	m.applyYAML(t, `apiVersion: scheduling.hypershift.openshift.io/v1alpha1
kind: ClusterSizingConfiguration
metadata: {name: cluster}
spec:
  concurrency: {slidingWindow: 1s, limit: 10}
  transitionDelay: {increase: 1s, decrease: 1s}
  sizes:
  - {name: small, criteria: {from: 0, to: 1}}
  - {name: medium, criteria: {from: 2, to: 10}, effects: {maximumRequestsInflight: 777}}
  - {name: large, criteria: {from: 11}}
`)
	size := func(name string) string {
		return m.run(t, "get", "hostedcluster", "-n", "clusters", name, "-o", `jsonpath={.metadata.labels.hypershift\.openshift\.io/hosted-cluster-size}`)
	}
	for name, want := range map[string]string{"demo": "medium", "north": "small", "south": "small"} {
		eventually(t, sizesTime, "the size of "+name, func() error {
			if got := size(name); got != want {
				return fmt.Errorf("it is %q, want %s", got, want)
			}
			return nil
		})
	}
	inflight := func(name string) bool {
		return strings.Contains(m.run(t, "get", "deployment", "-n", "clusters-"+name, "kube-apiserver", "-o", "jsonpath={.spec.template.spec.containers[0].args}"), "--max-requests-inflight=777")
	}
	eventually(t, sizesTime, "the effect of the size", func() error {
		if !inflight("demo") {
			return errors.New("the API server of demo has other flags")
		}
		return nil
	})
	if inflight("north") {
		t.Error("a small cluster has what follows from another size")
	}
	eventually(t, sizesTime, "demo", func() error { return available(t, "demo") })
	t.Logf("hypershift sizing plan:\n%s", run(t, time.Minute, "hypershift", "sizing", "plan", kubeconfigFlag()))
	t.Logf("hypershift capacity:\n%s", run(t, time.Minute, "hypershift", "capacity", kubeconfigFlag()))
}

func logsStay(t *testing.T) {
	m := management()
	m.applyYAML(t, `apiVersion: auditlogpersistence.hypershift.openshift.io/v1alpha1
kind: AuditLogPersistenceConfig
metadata: {name: cluster}
spec:
  enabled: true
  storage: {storageClassName: standard, size: 1Gi}
  auditLog: {maxSize: 10, maxBackup: 5}
  snapshots: {enabled: true}
`)
	condition := func(kind string) string {
		return m.run(t, "get", "auditlogpersistenceconfig", "cluster", "-o", `jsonpath={.status.conditions[?(@.type=="`+kind+`")].reason}`)
	}
	eventually(t, sizesTime, "the configuration to be applied", func() error {
		if condition("Valid") != "AsExpected" || condition("Applied") != "AsExpected" || condition("SnapshotsPossible") != "NoVolumeSnapshots" {
			return fmt.Errorf("Valid %s, Applied %s, SnapshotsPossible %s", condition("Valid"), condition("Applied"), condition("SnapshotsPossible"))
		}
		return nil
	})
	const ns = "clusters-north"
	pod := func() string {
		return m.run(t, "get", "pods", "-n", ns, "-l", "app=kube-apiserver", "-o", `jsonpath={range .items[?(@.spec.volumes[*].ephemeral)]}{.metadata.name} {.status.phase} {.status.containerStatuses[0].ready}{"\n"}{end}`)
	}
	first := ""
	eventually(t, sizesTime, "an API server with a volume", func() error {
		name, rest, _ := strings.Cut(pod(), " ")
		if rest != "Running true" {
			return fmt.Errorf("pods: %s %s", name, rest)
		}
		first = name
		return nil
	})
	owners := func(claim string) string {
		words := strings.Fields(m.run(t, "get", "persistentvolumeclaim", "-n", ns, claim, "-o", "jsonpath={.status.phase} {.metadata.ownerReferences[*].kind}"))
		slices.Sort(words) // owners come in any order
		return strings.Join(words, " ")
	}
	eventually(t, sizesTime, "a claim that is kept", func() error {
		if got := owners(first + "-logs"); got != "Bound Pod ReplicaSet" {
			return errors.New(got)
		}
		return nil
	})
	m.run(t, "delete", "pod", "-n", ns, first, "--wait=false")
	eventually(t, sizesTime, "another pod", func() error {
		name, rest, _ := strings.Cut(pod(), " ")
		if name == first || rest != "Running true" {
			return fmt.Errorf("pods: %s %s", name, rest)
		}
		return nil
	})
	eventually(t, sizesTime, "the claim to stay without its pod", func() error {
		if got := owners(first + "-logs"); got != "Bound ReplicaSet" {
			return errors.New(got)
		}
		return nil
	})
	volume := m.run(t, "get", "persistentvolumeclaim", "-n", ns, first+"-logs", "-o", "jsonpath={.spec.volumeName}")
	found, err := filepath.Glob(filepath.Join(stateDir, "*", volume+"*", "audit.log"))
	if err == nil && len(found) == 1 {
		if raw, err := os.ReadFile(found[0]); err == nil {
			findings = append(findings, fmt.Sprintf("the audit log of a pod that is gone has %d lines", strings.Count(string(raw), "\n")))
		}
	}
}
