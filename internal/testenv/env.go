package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// startTimeout is how long etcd and kube-apiserver, and then our definitions, may each take on a machine that is busy with other builds;
// 3 s when idle.
const startTimeout = 3 * time.Minute

// The API servers of tests live for a minute, so they may have more garbage (in percent of what is in use) before they collect it than the
// 100 of programs that stay: a fifth of their processor time went there. Where they get thrifty again (in bytes) is a sixteenth of the machine's memory, so that
// several packages fit on it, and leastMemory on a small one. GOGC in the environment turns both off. Test binaries are left as they are outside of suites
// (collectLess): some measure their memory.
const (
	garbage     = 300
	leastMemory = 800 << 20
)

func memory() uint64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return leastMemory
	}
	return max(leastMemory, info.Totalram*uint64(info.Unit)/16)
}

// etcdData is the folder of etcd's data, in that of the environment.
const etcdData = "etcd"

// Env is a running API server. It is shared by all tests of a binary.
type Env struct {
	// Config authenticates as a member of system:masters.
	Config *rest.Config
	// CA, in PEM, is what the server's certificate chains to.
	CA []byte

	// token is of the same user as Config.
	token     string
	dir       string
	binary    string
	etcdURL   string
	etcdFlags []string
	processes []*Process
	// commands are the arguments of what runs, by name.
	commands map[string][]string

	privateCAPI    sync.Once
	privateCAPIErr error

	// discovery guards the next ones, which all clients share.
	discovery    sync.Once
	discoveryErr error
	httpClient   *http.Client
	mapper       meta.RESTMapper
}

var shared struct {
	once sync.Once
	env  *Env
	err  error

	controllers, workloads, storage controllerManager
}

// Start returns the API server of this test binary, started at the first call, with our CustomResourceDefinitions and Cluster API's.
func Start(t testing.TB) *Env {
	t.Helper()
	binary := KubeBinary(t)
	shared.once.Do(func() { shared.env, shared.err = start(binary) })
	if shared.err != nil {
		t.Fatalf("starting the API server of the tests: %v", shared.err)
	}
	return shared.env
}

// Main runs the tests of a package and removes what Start made. Use it as TestMain's body:
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
func Main(m *testing.M) int {
	code := m.Run()
	if env := shared.env; env != nil {
		env.stop()
	}
	return code
}

func start(binary string) (*Env, error) {
	dir, err := workDir()
	if err != nil {
		return nil, err
	}
	env := &Env{dir: dir, binary: binary}
	if err := env.setUp(seedFolder(binary)); err != nil {
		env.stop()
		return nil, err
	}
	return env, nil
}

// setUp starts the servers from a seed, and makes it when there is none. Without a seed, which an empty name asks for, all begins with nothing.
func (e *Env) setUp(seed string) error {
	data := filepath.Join(e.dir, etcdData)
	if seed != "" && plant(seed, data) == nil {
		if e.startServers() == nil {
			return nil
		}
		// It may be damaged: what begins with nothing finds out.
		e.kill()
		_ = os.RemoveAll(seed)
	}
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	if err := errors.Join(e.startServers(), e.installCRDs()); err != nil || seed == "" {
		return err
	}
	e.kill()
	_ = keepSeed(data, seed) // else the next one makes it
	return e.startServers()
}

func (e *Env) startServers() error {
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	e.CA = ca.pem
	files := map[string][]byte{"ca.crt": ca.pem}
	for name, orgs := range map[string][]string{"apiserver": nil, "admin": {"system:masters"}, "sa": nil} {
		cert, key, err := ca.issue(name, orgs...)
		if err != nil {
			return err
		}
		files[name+".crt"], files[name+".key"] = cert, key
	}
	e.token = rand.Text()
	files[tokensFile] = []byte(e.token + ",admin,admin,system:masters\n")
	if err := writeFiles(e.dir, files); err != nil {
		return err
	}
	ports, err := FreePorts(3)
	if err != nil {
		return err
	}
	e.etcdURL = fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	peer := fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	// No fsync: what a test wrote need not survive a power failure.
	if err := e.run("etcd", append([]string{"--data-dir=" + etcdData, "--listen-client-urls=" + e.etcdURL, "--advertise-client-urls=" + e.etcdURL,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer, "--unsafe-no-fsync",
		"--log-level=warn"}, e.etcdFlags...)...); err != nil {
		return err
	}
	if err := e.run("kube-apiserver", "--etcd-servers="+e.etcdURL, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[2]),
		// A documentation address: nothing dials it, and endpoints refuse loopback.
		"--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC",
		"--tls-cert-file=apiserver.crt", "--tls-private-key-file=apiserver.key", "--client-ca-file=ca.crt", "--token-auth-file="+tokensFile, "--allow-privileged",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=sa.crt", "--service-account-signing-key-file=sa.key",
		"--disable-admission-plugins=ServiceAccount", "--max-requests-inflight=0", "--max-mutating-requests-inflight=0",
		"--enable-priority-and-fairness=false"); err != nil {
		return err
	}
	e.Config = &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", ports[2]), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem, CertData: files["admin.crt"], KeyData: files["admin.key"]},
	}
	return e.waitReady()
}

func (e *Env) run(name string, args ...string) error {
	var env []string
	if os.Getenv("GOGC") == "" {
		env = []string{fmt.Sprintf("GOGC=%d", garbage), fmt.Sprintf("GOMEMLIMIT=%d", memory())}
	}
	p, err := StartProcess(e.binary, e.dir, name, env, args...)
	if err != nil {
		return err
	}
	e.processes = append(e.processes, p)
	if e.commands == nil {
		e.commands = map[string][]string{}
	}
	e.commands[name] = args
	return nil
}

func (e *Env) waitReady() error {
	httpClient, err := rest.HTTPClientFor(e.Config)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		for _, p := range e.processes {
			select {
			case <-p.Done():
				return false, fmt.Errorf("%s ended: %s", p.LogFile, p.Tail())
			default:
			}
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.Config.Host+"/readyz", nil)
		if err != nil {
			return false, err
		}
		resp, err := httpClient.Do(req)
		if err != nil {
			return false, nil // not listening yet
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the API server: %w", err)
	}
	return nil
}

func (e *Env) stop() {
	e.kill()
	_ = os.RemoveAll(e.dir)
}

// kill ends the processes, those last that the others need.
func (e *Env) kill() {
	for i := len(e.processes) - 1; i >= 0; i-- {
		e.processes[i].Kill()
	}
	e.processes = nil
}

// StartControllers adds a real kube-controller-manager with the controllers of namespaces, garbage and quotas, which tests of deletion need. It is
// shared, too.
func (e *Env) StartControllers(t testing.TB) {
	t.Helper()
	shared.controllers.start(t, e, "namespace-controller,garbage-collector-controller,resourcequota-controller")
}

// StartWorkloadControllers adds those that make pods of Deployments, and claims of their own volumes. No pod runs: there is no scheduler, and no node.
func (e *Env) StartWorkloadControllers(t testing.TB) {
	t.Helper()
	shared.workloads.start(t, e, "deployment-controller,replicaset-controller,ephemeral-volume-controller")
}

// StartVolumeControllers adds those that bind claims to volumes, and make claims and pods of StatefulSets. Nobody provides volumes, and no pod runs.
func (e *Env) StartVolumeControllers(t testing.TB) {
	t.Helper()
	shared.storage.start(t, e, "persistentvolume-binder-controller,statefulset-controller")
}

// controllerManager is a kube-controller-manager that is started when somebody first asks for it.
type controllerManager struct {
	once sync.Once
	err  error
}

func (m *controllerManager) start(t testing.TB, e *Env, controllers string) {
	t.Helper()
	if m.once.Do(func() { m.err = e.runControllers(controllers) }); m.err != nil {
		t.Fatalf("starting kube-controller-manager: %v", m.err)
	}
}

func (e *Env) runControllers(names string) error {
	path := e.dir + "/admin.kubeconfig"
	if err := clientcmd.WriteToFile(kubeconfig(e.Config), path); err != nil {
		return err
	}
	ports, err := FreePorts(1)
	if err != nil {
		return err
	}
	return e.run("kube-controller-manager", "--kubeconfig="+path, "--leader-elect=false", "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0]),
		"--controllers="+names, "--concurrent-namespace-syncs=10", "--authorization-always-allow-paths=*")
}

// tokensFile has the token of the environment's administrator.
const tokensFile = "tokens.csv"

// Client returns an uncached client for scheme. All clients of an environment share what they know of the server's kinds: to ask for that costs more than what
// many a test does. A kind that was deleted meanwhile is answered with NotFound by the server.
func (e *Env) Client(t testing.TB, scheme *runtime.Scheme) client.WithWatch {
	t.Helper()
	e.discovery.Do(func() {
		// The same user as with the certificate, which the API server would verify anew at each request: a tenth of what small ones cost it.
		cfg := rest.AnonymousClientConfig(e.Config)
		cfg.BearerToken = e.token
		if e.httpClient, e.discoveryErr = rest.HTTPClientFor(cfg); e.discoveryErr == nil {
			e.mapper, e.discoveryErr = apiutil.NewDynamicRESTMapper(cfg, e.httpClient)
		}
	})
	if e.discoveryErr != nil {
		t.Fatalf("building what clients share: %v", e.discoveryErr)
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: scheme, HTTPClient: e.httpClient, Mapper: e.mapper})
	if err != nil {
		t.Fatalf("building a client: %v", err)
	}
	return c
}

// coreScheme knows what Namespace makes.
var coreScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	return scheme
})

// Namespace makes a namespace of its own for a test. It is left behind: without a controller manager nothing would empty it.
func (e *Env) Namespace(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := e.Client(t, coreScheme()).Create(t.Context(), ns); err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return ns.Name
}

func kubeconfig(cfg *rest.Config) clientcmdapi.Config {
	return clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: cfg.Host, CertificateAuthorityData: cfg.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}
}

// Kubeconfig returns the environment's admin kubeconfig as a file's content.
func (e *Env) Kubeconfig(t testing.TB) []byte {
	t.Helper()
	data, err := clientcmd.Write(kubeconfig(e.Config))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
