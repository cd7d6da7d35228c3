//go:build e2e && live

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// harm breaks programs and objects of a running cluster in ways that kubectl has no command for.
type harm struct {
	k kubectl
	// kept is what objects were before they were harmed.
	kept map[string]string
	hook *httptest.Server
	// leave lets go what was shut out.
	leave context.CancelFunc
}

// processes finds the processes of pods by their control groups, whose paths hold the pod's UID.
func (h *harm) processes(t *testing.T, namespace, selector, program string) (pids []int, groups []string) {
	t.Helper()
	uids := strings.Fields(h.k.run(t, "get", "pods", "-n", namespace, "-l", selector, "-o", "jsonpath={.items[*].metadata.uid}"))
	return processesOf(uids, program)
}

// processesOf returns processes whose command line has a program in it, and the folders of the pods' control groups for memory.
func processesOf(uids []string, program string) (pids []int, groups []string) {
	for _, file := range list("/proc/[0-9]*/cgroup") {
		raw, _ := os.ReadFile(file) // one that just went has none
		i := slices.IndexFunc(uids, func(uid string) bool { return strings.Contains(string(raw), "pod"+uid) })
		if i < 0 {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || !strings.Contains(strings.ReplaceAll(string(line), "\x00", " "), program) {
			continue
		}
		pids = append(pids, pid)
		for _, group := range strings.Split(string(raw), "\n") {
			parts := strings.SplitN(group, ":", 3)
			if len(parts) != 3 || parts[1] != "memory" && parts[1] != "" {
				continue
			}
			end := strings.Index(parts[2], "pod"+uids[i])
			if end < 0 {
				continue
			}
			base := "/sys/fs/cgroup"
			if parts[1] == "memory" {
				base += "/memory"
			}
			if group := filepath.Join(base, parts[2][:end], "pod"+uids[i]); isDir(group) { // of two hierarchies one has the controller
				groups = append(groups, group)
			}
		}
	}
	return pids, groups
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// signal sends a signal to a program of pods.
func (h *harm) signal(namespace, selector, program string, s syscall.Signal) func(*testing.T) {
	return func(t *testing.T) {
		pids, _ := h.processes(t, namespace, selector, program)
		if len(pids) == 0 && s != syscall.SIGCONT {
			t.Fatalf("no process of %s in %s has %q in its command line", selector, namespace, program)
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, s) // one that just went needs none
		}
	}
}

// killAgain kills a program of pods until the kubelet waits before it starts it once more.
func (h *harm) killAgain(namespace, selector, program string) func(*testing.T) {
	return func(t *testing.T) {
		eventually(t, 2*time.Minute, "a program that ends again and again", func() error {
			pids, _ := h.processes(t, namespace, selector, program)
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			out := h.k.run(t, "get", "pods", "-n", namespace, "-l", selector, "-o", "jsonpath={.items[*].status}")
			if !strings.Contains(out, "CrashLoopBackOff") {
				return fmt.Errorf("the pods are %s", out)
			}
			return nil
		})
	}
}

// starve gives the pods of a program less memory than it needs, and has it start anew. The limit is the pod's, so that it stays when a container goes.
func (h *harm) starve(namespace, selector, program string, bytes int) func(*testing.T) {
	return func(t *testing.T) {
		pids, groups := h.processes(t, namespace, selector, program)
		if len(groups) == 0 {
			t.Fatalf("no control group of %s in %s was found for %v", selector, namespace, pids)
		}
		eventually(t, time.Minute, "a limit of memory", func() error {
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			for _, group := range groups {
				file := filepath.Join(group, "memory.limit_in_bytes")
				if _, gone := os.Stat(file); gone != nil {
					file = filepath.Join(group, "memory.max")
				}
				if failed := os.WriteFile(file, []byte(strconv.Itoa(bytes)), 0o600); failed != nil {
					pids, _ = h.processes(t, namespace, selector, program)
					return failed // the kernel takes none below what is used: the process was not gone yet
				}
			}
			return nil
		})
	}
}

// shutOut has an API server take no writes of somebody to some objects. It takes one at a time where none is allowed, so somebody else is always there.
func (h *harm) shutOut(t *testing.T, k kubectl, who, group, resource string) {
	t.Helper()
	k.applyYAML(t, fmt.Sprintf(jail, who, group, resource))
	k.run(t, "wait", "flowschema/jail", "--for=condition=Dangling=False", "--timeout=40s")
	cfg, err := clientcmd.BuildConfigFromFlags("", k.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Impersonate.UserName = prisoner
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	h.leave = leave
	go func() {
		for ctx.Err() == nil {
			sit(ctx, c, cfg.Host)
		}
	}()
	taken := func() error {
		out, err := k.try(t, "create", "configmap", "-n", "default", "taken", "--as="+prisoner, "--dry-run=server")
		if !strings.Contains(out, "too many requests") {
			return fmt.Errorf("%s (%w)", out, errors.Join(err, errors.New("there is room")))
		}
		return nil
	}
	eventually(t, time.Minute, "an API server that takes no more", taken)
}

// sit makes one request that lasts until the API server has enough of it: its body does not end.
func sit(ctx context.Context, c *http.Client, host string) {
	body, pipe := io.Pipe()
	defer pipe.Close()
	go func() { _, _ = pipe.Write([]byte(`{"apiVersion":"v1",`)) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, host+"/api/v1/namespaces/default/configmaps", body)
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	if response, err := c.Do(req); err == nil {
		response.Body.Close()
	}
}

// freed ends what shutOut began.
func (h *harm) freed(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		if h.leave != nil {
			h.leave()
		}
		k.run(t, "delete", "flowschema/jail", "prioritylevelconfiguration/jail", "clusterrolebinding/jail", "--ignore-not-found")
	}
}

// prisoner is who sits there.
const prisoner = "prisoner"

// swap writes a value into a Secret, and puts what was there back when value is empty.
func (h *harm) swap(namespace, secret, key, value string) func(*testing.T) {
	return func(t *testing.T) {
		name := namespace + "/" + secret + "/" + key
		encoded := base64.StdEncoding.EncodeToString([]byte(value))
		if value == "" {
			encoded = h.kept[name]
		} else {
			h.kept[name] = h.k.run(t, "get", "secret", "-n", namespace, secret, "-o", "jsonpath={.data."+strings.ReplaceAll(key, ".", `\.`)+"}")
		}
		h.k.run(t, "patch", "secret", "-n", namespace, secret, "--type=merge", "-p", fmt.Sprintf(`{"data":{%q:%q}}`, key, encoded))
	}
}

// forget takes a field out of a definition, as one of an older version lacks it, and puts it back when path is empty.
func (h *harm) forget(definition string, path ...string) func(*testing.T) {
	return func(t *testing.T) {
		if len(path) == 0 {
			h.k.run(t, "patch", "crd", definition, "--type=json", "-p", h.kept[definition])
			return
		}
		obj := map[string]any{}
		if err := json.Unmarshal([]byte(h.k.run(t, "get", "crd", definition, "-o", "json")), &obj); err != nil {
			t.Fatal(err)
		}
		pointer := "/spec/versions/0/schema/openAPIV3Schema/properties/" + strings.Join(path, "/properties/")
		at := obj["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		for _, name := range path {
			at = at["properties"].(map[string]any)[name].(map[string]any)
		}
		add, err := json.Marshal([]any{map[string]any{"op": "add", "path": pointer, "value": at}})
		if err != nil {
			t.Fatal(err)
		}
		h.kept[definition] = string(add)
		h.k.run(t, "patch", "crd", definition, "--type=json", "-p", fmt.Sprintf(`[{"op":"remove","path":%q}]`, pointer))
	}
}

// refusing starts a webhook that refuses everything, with a certificate that ends then, and has it asked about NetworkPolicies.
func (h *harm) refusing(name string, ends time.Time) func(*testing.T) {
	return func(t *testing.T) {
		cert, bundle := selfSigned(t, ends)
		h.hook = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var review struct {
				Request struct{ UID string }
			}
			_ = json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<20)).Decode(&review)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":false,"status":{"message":"nobody may do so on Mondays"}}}`, review.Request.UID)
		}))
		h.hook.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
		h.hook.StartTLS()
		manifest := strings.ReplaceAll(strings.ReplaceAll(deadWebhook, "dead", name), "https://127.0.0.1:1/x", h.hook.URL)
		manifest = strings.Replace(manifest, `clientConfig: {url:`, `clientConfig: {caBundle: `+base64.StdEncoding.EncodeToString(bundle)+`, url:`, 1)
		h.k.applyYAML(t, manifest)
	}
}

func (h *harm) allowing(name string) func(*testing.T) {
	return func(t *testing.T) {
		h.k.run(t, "delete", "validatingwebhookconfiguration", name)
		h.hook.Close()
	}
}

// selfSigned makes a certificate for 127.0.0.1.
func selfSigned(t *testing.T, ends time.Time) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhook"}, NotBefore: ends.Add(-2 * time.Hour), NotAfter: ends, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// keyPEM is a private key that belongs to nothing.
func keyPEM(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// jail is how an API server is told to take no request of somebody for some objects.
const jail = `
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: jail}
spec: {type: Limited, limited: {nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: jail}
spec:
  matchingPrecedence: 50
  priorityLevelConfiguration: {name: jail}
  rules:
  - subjects: [%s]
    resourceRules: [{verbs: [create, update, patch], apiGroups: [%s], resources: [%s], clusterScope: true, namespaces: ["*"]}]
  - subjects: [{kind: User, user: {name: prisoner}}]
    resourceRules: [{verbs: [create], apiGroups: [""], resources: [configmaps], namespaces: [default]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: jail}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: prisoner}]
`

// deadAPI is an aggregated API that nobody serves.
const deadAPI = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.dead.example.com}
spec: {group: dead.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: default, name: nowhere}}
`

// large makes a ConfigMap of a file for machines that does not compress. It is no larger than an object may be, and two of them are.
func (h *harm) large(t *testing.T, name string) {
	t.Helper()
	raw := make([]byte, 500<<10)
	if _, err := rand.Read(raw); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "large")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, fmt.Appendf(nil, `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 99-%[1]s}
spec: {config: {ignition: {version: 3.2.0}, storage: {files: [{path: /etc/%[1]s, contents: {source: "data:;base64,%s"}}]}}}
`, name, base64.StdEncoding.EncodeToString(raw)), 0o600); err != nil {
		t.Fatal(err)
	}
	h.k.run(t, "create", "configmap", "-n", "clusters", name, "--from-file=config="+file)
}

const kubeletConfig = `
apiVersion: v1
kind: ConfigMap
metadata: {name: tuned-kubelet, namespace: clusters}
data:
  config: |
    apiVersion: machineconfiguration.openshift.io/v1
    kind: KubeletConfig
    metadata: {name: tuned-kubelet}
    spec: {kubeletConfig: {maxPods: 77}}
`

const foreignConfig = `{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, namespace: clusters}, data: {config: "{apiVersion: example.com/v1, kind: Foo, metadata: {name: x}}"}}`

// harmFaults lists what is broken below the objects: processes, memory, keys, definitions, limits of API servers. What is in unseen has not been seen to pass.
func harmFaults(k kubectl, pool string, copied func(kind, name, as, finalizer string) func(*testing.T)) (seen, unseen []liveFault) {
	h := &harm{k: k, kept: map[string]string{}}
	do := func(args ...string) func(*testing.T) { return func(t *testing.T) { k.run(t, args...) } }
	apply := func(manifest string) func(*testing.T) { return func(t *testing.T) { k.applyYAML(t, manifest) } }
	patch := func(kind, name, body string) func(*testing.T) {
		return do("patch", kind, "-n", "clusters", name, "--type=merge", "-p", body)
	}
	annotate := func(key, value string) func(*testing.T) {
		return patch("hostedcluster", "demo", fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, "hypershift.openshift.io/"+key, value))
	}
	operator := func(t *testing.T) string {
		return k.run(t, "get", "deployment", "operator", "-n", "hypershift", "-o", "jsonpath={.spec.template.spec.serviceAccountName}")
	}
	cluster, control := []string{"hostedcluster/demo"}, "clusters-demo"
	policies := do("delete", "networkpolicy", "-n", control, "--all", "--wait=false")
	fight, peace := contest(k)
	lab := do("delete", "nodepool", "-n", "clusters", "lab", "--timeout=50s")
	seen = []liveFault{
		{"the API of the hosted cluster ends again and again", cluster, h.killAgain(control, "app=kube-apiserver", "kube-apiserver"), func(*testing.T) {}, `kube-apiserver-\S+ (does not stay up|runs and is not ready)`, "", true},
		{"the target of a package is away", []string{"package/hello", "--cluster=demo"}, inTurn(h.killAgain(control, "app=kube-apiserver", "kube-apiserver"),
			func(t *testing.T) {
				k.run(t, "annotate", "package", "-n", control, "hello", "--overwrite", "touched="+time.Now().Format("150405"))
			}), func(*testing.T) {}, `kube-apiserver-\S+|can't be reached`, "", false},
		{"the ignition server stands still", cluster, h.signal(control, "app=ignition-server", "ignition", syscall.SIGSTOP), h.signal(control, "app=ignition-server", "ignition", syscall.SIGCONT),
			`ignition-server-\S+ (runs and is not ready|does not stay up)`, "", false},
		{"the proxy of Cluster API ends again and again", cluster, h.killAgain(control, "hypershift.openshift.io/control-plane-component=capi-provider", "capi-proxy"), func(*testing.T) {},
			`capi-provider-\S+ .*kube-apiserver-proxy`, "", false},
		{"the image of Cluster API's manager is nowhere", cluster, annotate("capi-manager-image", `"127.0.0.1:1/none:1"`), annotate("capi-manager-image", "null"), `cluster-api-\S+ can't get image.*127\.0\.0\.1:1/none:1`, "pod-image-pull-back-off", false},
		{"a webhook refuses", cluster, inTurn(h.refusing("refusing", time.Now().Add(time.Hour)), policies), h.allowing("refusing"), `nobody may do so on Mondays`, "webhook-refuses", true},
		{"the certificate of a webhook has expired", cluster, inTurn(h.refusing("expired", time.Now().Add(-time.Hour)), policies), h.allowing("expired"), `certificate has expired`, "", true},
		{"the key of an authority is another's", cluster, func(t *testing.T) { h.swap(control, "etcd-metrics-signer", "ca.key", keyPEM(t))(t) }, h.swap(control, "etcd-metrics-signer", "ca.key", ""),
			`etcd-metrics-signer.*does not belong`, "certificates-not-reconciled", true},
		{"a definition is older than the operator", cluster, inTurn(h.forget("hostedcontrolplanes.hypershift.openshift.io", "spec", "pausedUntil"), patch("hostedcluster", "demo", `{"spec":{"pausedUntil":"true"}}`)),
			inTurn(h.forget("hostedcontrolplanes.hypershift.openshift.io"), patch("hostedcluster", "demo", `{"spec":{"pausedUntil":null}}`)), `field not declared in schema|unknown field`, "unknown-field", true},
		{"the configuration of machines is too large", []string{"np/lab"}, func(t *testing.T) {
			copied("nodepool", pool, "lab", "")(t)
			for _, name := range []string{"large-1", "large-2"} {
				h.large(t, name)
			}
			patch("nodepool", "lab", `{"spec":{"config":[{"name":"large-1"},{"name":"large-2"}]}}`)(t)
		}, inTurn(lab, do("delete", "configmap", "-n", "clusters", "large-1", "large-2", "--ignore-not-found")), `after compression, and may have|larger than|more than`, "pool-config-invalid", false},
		{"the configuration of machines is of a kind that nobody knows", []string{"np/lab"}, inTurn(copied("nodepool", pool, "lab", ""), apply(foreignConfig), patch("nodepool", "lab", `{"spec":{"config":[{"name":"foreign"}]}}`)),
			inTurn(lab, do("delete", "configmap", "-n", "clusters", "foreign", "--ignore-not-found")), `"foreign".*Foo`, "pool-config-invalid", false},
		{"somebody changed what machines are made of", []string{"np/" + pool}, inTurn(apply(kubeletConfig), patch("nodepool", pool, `{"spec":{"config":[{"name":"tuned-kubelet"}]}}`)),
			inTurn(patch("nodepool", pool, `{"spec":{"config":null}}`), do("delete", "configmap", "-n", "clusters", "tuned-kubelet")), `machines are being replaced, since .*tuned-kubelet`, "", false},
		{"the kubelet of a worker stands still", []string{"np/" + pool}, func(t *testing.T) { h.kubelet(t, syscall.SIGSTOP) }, func(t *testing.T) { h.kubelet(t, syscall.SIGCONT) }, `[Kk]ubelet stopped posting`, "", false},
		{"it was deleted while an aggregated API is dead", []string{"hostedcluster/go-ne"}, inTurn(copied("hostedcluster", "demo", "go-ne", ""), h.namespace("clusters-go-ne"), apply(deadAPI),
			do("delete", "hostedcluster", "-n", "clusters", "go-ne", "--wait=false")), inTurn(do("delete", "apiservice", "v1.dead.example.com"), do("wait", "hostedcluster", "-n", "clusters", "go-ne", "--for=delete", "--timeout=50s")),
			`dead\.example\.com`, "deletion-namespace", false},
		{"the operator stands still", cluster, inTurn(h.signal("hypershift", "name=operator", "hypershift-operator", syscall.SIGSTOP), h.oldLeases("hypershift")),
			h.signal("hypershift", "name=operator", "hypershift-operator", syscall.SIGCONT), `operator \S+, which holds lease \S+ has stalled|operator-\S+ (runs and is not ready|does not stay up)`, "", false},
		{"somebody writes the same object again and again", cluster, fight, peace, `back and forth: metadata\.labels`, "hot-loop", false},
		{"a program has too little memory", cluster, h.starve(control, "app=kube-scheduler", "kube-scheduler", 14<<20), do("delete", "pod", "-n", control, "-l", "app=kube-scheduler", "--wait=false"),
			`kube-scheduler-\S+ .*(memory|OOM)`, "", false},
		{"the API server takes no writes of the operator", cluster, func(t *testing.T) {
			h.shutOut(t, k, fmt.Sprintf("{kind: ServiceAccount, serviceAccount: {namespace: hypershift, name: %s}}", operator(t)), "networking.k8s.io", "networkpolicies")
			policies(t)
		}, h.freed(k), `too many requests`, "api-overloaded", true},
		{"two hosted clusters want one namespace", []string{"hostedcluster/go.ne"}, inTurn(copied("hostedcluster", "demo", "go-ne", ""), h.namespace("clusters-go-ne"), copied("hostedcluster", "demo", "go.ne", "")),
			do("delete", "hostedcluster", "-n", "clusters", "go.ne", "go-ne", "--timeout=50s"), `belongs to HostedCluster clusters/go-ne`, "owned-by-other", false},
	}
	unseen = []liveFault{
		{"a tenant has the config operator shut out", cluster, func(t *testing.T) {
			h.shutOut(t, hosted(), `{kind: User, user: {name: "system:hosted-cluster-config"}}`, "rbac.authorization.k8s.io", "clusterrolebindings")
			hosted().run(t, "delete", "clusterrolebinding", "csr-renewal")
		}, h.freed(hosted()), `TooManyRequests`, "api-overloaded", true},
	}
	return seen, unseen
}

// inTurn does one after the other.
func inTurn(steps ...func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		for _, step := range steps {
			step(t)
		}
	}
}

// namespace waits for a namespace.
func (h *harm) namespace(name string) func(*testing.T) {
	return func(t *testing.T) {
		eventually(t, time.Minute, "namespace "+name, func() error {
			out, err := h.k.try(t, "get", "namespace", name)
			return errors.Join(err, map[bool]error{true: errors.New(out)}[err != nil])
		})
	}
}

// kubelet sends a signal to that of one worker.
func (h *harm) kubelet(t *testing.T, s syscall.Signal) {
	t.Helper()
	worker := poolMachines(t, "demo")[0]
	uid := h.k.run(t, "get", "pod", "-n", demoNamespace, worker, "-o", "jsonpath={.metadata.uid}")
	pids, _ := processesOf([]string{uid}, "kubelet ")
	if len(pids) == 0 {
		t.Fatalf("worker %s has no kubelet", worker)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, s)
	}
}

// oldLeases makes leases as old as they are after ten minutes in which nobody renewed them.
func (h *harm) oldLeases(namespace string) func(*testing.T) {
	return func(t *testing.T) {
		for _, name := range names(t, "leases", namespace) {
			h.k.run(t, "patch", "lease", "-n", namespace, name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Add(-10*time.Minute).Format("2006-01-02T15:04:05.000000Z")))
		}
	}
}
