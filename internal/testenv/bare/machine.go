package bare

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/testenv"
)

// bootTimeout is for a machine that is busy with other builds; an idle one needs 6 s.
const bootTimeout = 2 * time.Minute

// Machine runs containers of pods as processes: their volumes become folders, their addresses ports of the loopback.
type Machine struct {
	t       testing.TB
	root    string
	files   map[string]map[string][]byte // object kind/name → key → content
	ports   map[string]int
	binary  string
	running []*testenv.Process
	shards  []string // names of shards of etcd
}

// NewMachine prepares ports, and the files that objs become; what it runs ends with the test.
func NewMachine(t testing.TB, objs []client.Object) *Machine {
	t.Helper()
	m := &Machine{t: t, root: t.TempDir(), binary: testenv.KubeBinary(t), files: map[string]map[string][]byte{}, ports: map[string]int{}}
	names := []string{"etcd", "peer", "metrics", "api", "kube-controller-manager", "kube-scheduler"}
	ports, err := testenv.FreePorts(len(names))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		m.ports[name] = ports[i]
	}
	for _, obj := range objs {
		data := map[string][]byte{}
		switch o := obj.(type) {
		case *corev1.Secret:
			data = o.Data
			m.files["Secret/"+o.Name] = data
		case *corev1.ConfigMap:
			for k, v := range o.Data {
				data[k] = []byte(v)
			}
			m.files["ConfigMap/"+o.Name] = data
		}
	}
	t.Cleanup(m.Stop)
	return m
}

// local puts addresses of the control plane namespace on this machine.
func (m *Machine) local(s string) string {
	at := func(port string) string { return fmt.Sprintf("localhost:%d", m.ports[port]) }
	on := func(port string) string { return fmt.Sprintf("127.0.0.1:%d", m.ports[port]) }
	var pairs []string
	for _, shard := range m.shards {
		host := "etcd-" + shard + "-0.etcd-discovery-" + shard + "." + Namespace + ".svc"
		pairs = append(pairs, "etcd-client-"+shard+"."+Namespace+".svc:2379", at("etcd-"+shard), host+":2379", at("etcd-"+shard), host+":2380", at("peer-"+shard))
	}
	return strings.NewReplacer(append(pairs,
		"0.0.0.0:2379", on("etcd"), "0.0.0.0:2380", on("peer"), "0.0.0.0:2382", on("metrics"),
		"etcd-client."+Namespace+".svc:2379", at("etcd"), "etcd-0.etcd-discovery."+Namespace+".svc:2379", at("etcd"),
		"etcd-0.etcd-discovery."+Namespace+".svc:2380", at("peer"),
		"kube-apiserver:6443", at("api"), "--secure-port=6443", fmt.Sprintf("--secure-port=%d", m.ports["api"]),
		"--secure-port=10257", fmt.Sprintf("--secure-port=%d", m.ports["kube-controller-manager"]),
		"--secure-port=10259", fmt.Sprintf("--secure-port=%d", m.ports["kube-scheduler"]),
		"--bind-address=0.0.0.0", "--bind-address=127.0.0.1",
	)...).Replace(s)
}

// StartShard runs the single member of a shard of etcd. Its client port is etcd-<shard>, that of its metrics metrics-<shard>.
func (m *Machine) StartShard(shard string, pod *corev1.PodSpec) *testenv.Process {
	m.t.Helper()
	on := func(port string) string { return fmt.Sprintf("127.0.0.1:%d", m.ports[port+"-"+shard]) }
	return m.start("etcd-"+shard, "etcd", pod, strings.NewReplacer(
		"0.0.0.0:2379", on("etcd"), "0.0.0.0:2380", on("peer"), "0.0.0.0:2382", on("metrics")).Replace)
}

// AddShards makes ports for shards of etcd, before anything is started.
func (m *Machine) AddShards(shards ...string) {
	m.t.Helper()
	ports, err := testenv.FreePorts(3 * len(shards))
	if err != nil {
		m.t.Fatal(err)
	}
	m.shards = shards
	for i, shard := range shards {
		for j, port := range []string{"etcd-", "peer-", "metrics-"} {
			m.ports[port+shard] = ports[3*i+j]
		}
	}
}

// Address is host and port of a port on this machine.
func (m *Machine) Address(port string) string { return fmt.Sprintf("localhost:%d", m.ports[port]) }

// Start runs the container that has the name of its pod's component.
func (m *Machine) Start(name string, pod *corev1.PodSpec) *testenv.Process {
	m.t.Helper()
	return m.start(name, name, pod, func(s string) string { return s })
}

// start runs a container in a folder of its own. own goes before what holds for all programs.
func (m *Machine) start(name, container string, pod *corev1.PodSpec, own func(string) string) *testenv.Process {
	m.t.Helper()
	root := filepath.Join(m.root, name)
	c := component.Container(pod, container)
	for _, mount := range c.VolumeMounts {
		dir := filepath.Join(root, mount.MountPath)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			m.t.Fatal(err)
		}
		for key, data := range m.content(pod, mount.Name) {
			data = []byte(m.inRoot(root, m.local(own(string(data)))))
			if err := os.WriteFile(filepath.Join(dir, key), data, 0o600); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	var args []string
	for _, arg := range c.Args {
		args = append(args, m.inRoot(root, m.local(own(arg))))
	}
	if name == "kube-controller-manager" || name == "kube-scheduler" {
		args = append(args, "--bind-address=127.0.0.1")
	}
	p, err := testenv.StartProcess(m.binary, root, c.Command[0], nil, args...)
	if err != nil {
		m.t.Fatal(err)
	}
	m.running = append(m.running, p)
	return p
}

func (m *Machine) inRoot(root, s string) string {
	for _, dir := range []string{"/etc/kubernetes", "/etc/etcd", "/var/lib", "/var/log"} {
		s = strings.ReplaceAll(s, dir+"/", filepath.Join(root, dir)+"/")
	}
	return s
}

func (m *Machine) content(pod *corev1.PodSpec, volume string) map[string][]byte {
	for _, v := range pod.Volumes {
		var key string
		switch {
		case v.Name != volume:
			continue
		case v.Secret != nil:
			key = "Secret/" + v.Secret.SecretName
		case v.ConfigMap != nil:
			key = "ConfigMap/" + v.ConfigMap.Name
		default:
			return nil
		}
		if m.files[key] == nil {
			m.t.Fatalf("volume %s: nobody makes %s", volume, key)
		}
		return m.files[key]
	}
	return nil
}

// Answers waits until a URL on this machine answers 200, and says how long that took.
func (m *Machine) Answers(ctx context.Context, scheme, port, path string) time.Duration {
	m.t.Helper()
	begin := time.Now()
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, bootTimeout, true, func(ctx context.Context) (bool, error) {
		for _, p := range m.running {
			select {
			case <-p.Done():
				return false, fmt.Errorf("%s ended:\n%s", p.LogFile, p.Tail())
			default:
			}
		}
		return m.Healthy(ctx, scheme, port, path), nil
	})
	if err != nil {
		m.t.Fatalf("waiting for %s of %s: %v", path, port, err)
	}
	return time.Since(begin)
}

// Healthy asks once whether a URL on this machine answers 200.
func (m *Machine) Healthy(ctx context.Context, scheme, port, path string) bool {
	m.t.Helper()
	insecure := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, // as the kubelet probes
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s://%s%s", scheme, m.Address(port), path), nil)
	if err != nil {
		m.t.Fatal(err)
	}
	resp, err := insecure.Do(req)
	if err != nil {
		return false // not listening yet
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Stop ends all programs at once; NewMachine's test does it, too.
func (m *Machine) Stop() {
	for _, p := range m.running {
		p.Kill()
	}
}

// File is what an object has under a key, with addresses on this machine; kind is Secret or ConfigMap.
func (m *Machine) File(kind, name, key string) []byte {
	return []byte(m.local(string(m.files[kind+"/"+name][key])))
}
