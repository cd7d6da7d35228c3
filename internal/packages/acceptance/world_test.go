package acceptance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/control/bootstrap"
	"hcp.internal/platform/internal/packages/control/hypershift"
	"hcp.internal/platform/internal/packages/control/manager"
	"hcp.internal/platform/internal/packages/control/packagecontroller"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

// asOperator is the variable that makes the test binary be package-operator-manager, with the arguments that it holds, one a line. So the tests
// run the program as a process, with what hcp-operators links, and need no build of it.
const asOperator = "PACKAGES_TEST_OPERATOR"

func TestMain(m *testing.M) {
	if lines := os.Getenv(asOperator); lines != "" {
		os.Exit(operatorMain(strings.Split(lines, "\n")))
	}
	os.Exit(testenv.Main(m))
}

func operatorMain(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := manager.Command(bootstrap.Run, packagecontroller.Extend, hypershift.Extend)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return 0
}

// patience is for what a process does that starts on a busy machine, or waits for a lease.
const patience = 2 * time.Minute

// world is an API server without controllers of ours; operators are processes.
type world struct {
	*packagestest.World
	kubeconfig string
	// home is a namespace of the test's own. Manifests and packages call it NAMESPACE.
	home string
}

func (w world) named(text string) string { return strings.ReplaceAll(text, "NAMESPACE", w.home) }

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{World: packagestest.Serve(t), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := os.WriteFile(w.kubeconfig, w.Env.Kubeconfig(t), 0o600); err != nil {
		t.Fatal(err)
	}
	w.home = w.Namespace(t)
	return w
}

// operator is a running package-operator-manager.
type operator struct {
	*exec.Cmd
	Metrics, Health string
	ended           chan error
}

// start runs one until the test ends, or it is stopped.
func (w world) start(t *testing.T, namespace string, args ...string) *operator {
	t.Helper()
	ports, err := testenv.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{
		Cmd: exec.Command(os.Args[0]), ended: make(chan error, 1),
		Metrics: fmt.Sprintf("127.0.0.1:%d", ports[0]), Health: fmt.Sprintf("127.0.0.1:%d", ports[1]),
	}
	all := append([]string{"--kubeconfig", w.kubeconfig, "--namespace", namespace, "-metrics-addr", o.Metrics, "-health-probe-bind-address=" + o.Health}, args...)
	o.Env = append(os.Environ(), asOperator+"="+strings.Join(all, "\n"))
	log, err := os.Create(filepath.Join(t.TempDir(), "operator.log"))
	if err != nil {
		t.Fatal(err)
	}
	o.Stdout, o.Stderr = log, log
	o.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := o.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { o.ended <- o.Wait() }()
	t.Cleanup(func() {
		_ = o.Process.Kill()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the operator said:\n%.20000s", text)
		}
	})
	return o
}

// stop asks it to end and returns how it did.
func (o *operator) stop(g Gomega) error {
	g.Expect(o.Process.Signal(syscall.SIGTERM)).To(Succeed())
	var err error
	g.Eventually(o.ended, patience).Should(Receive(&err))
	return err
}

// get reads a page of the operator: the status and what it says.
func get(url string) (string, error) {
	resp, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	return fmt.Sprintf("%d\n%s", resp.StatusCode, body), err
}

// private is a registry that wants a user and a password, with the same content as an open one.
func private(t *testing.T, open *packagestest.Registry, user, password string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if u, p, ok := req.BasicAuth(); !ok || u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		open.Config.Handler.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// push stores a package as repository:tag.
func (w world) push(t *testing.T, r *packagestest.Registry, repository string, files load.Files) {
	t.Helper()
	for name, data := range files {
		files[name] = []byte(w.named(string(data)))
	}
	img, err := images.Build(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewTag(r.Host + "/" + repository)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// create makes objects from YAML.
func (w world) create(t *testing.T, manifests ...string) {
	t.Helper()
	for _, text := range manifests {
		if err := w.try(t, text); err != nil {
			t.Fatalf("creating %s: %v", w.named(text), err)
		}
	}
}

// ensure makes those that are not there.
func (w world) ensure(t *testing.T, manifests ...string) {
	t.Helper()
	for _, text := range manifests {
		if err := w.try(t, text); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("creating %s: %v", w.named(text), err)
		}
	}
}

func (w world) try(t *testing.T, text string) error {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(w.named(text)), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return w.Client.Create(t.Context(), obj)
}

// data waits for a ConfigMap and returns what it holds.
func (w world) data(t *testing.T, namespace, name string) map[string]string {
	t.Helper()
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = namespace, name
	w.Eventually(t, cm, func() error { return nil })
	return cm.Data
}

// hostedCluster makes a HostedCluster, which nothing runs.
func (w world) hostedCluster(t *testing.T, namespace, name string) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(testenv.HostedCluster(namespace, name))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: content}
	obj.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedCluster"))
	if err := w.Client.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// condition waits until a package has a condition and returns its message.
func (w world) condition(t *testing.T, namespace, name, conditionType, status, reason string) string {
	t.Helper()
	p := &v1alpha1.Package{}
	p.Namespace, p.Name = namespace, name
	obj := client.Object(p)
	if namespace == "" {
		obj = (*v1alpha1.ClusterPackage)(p)
	}
	message := ""
	w.Eventually(t, obj, func() error {
		for _, c := range p.Status.Conditions {
			if c.Type == conditionType && string(c.Status) == status && c.Reason == reason && c.ObservedGeneration == p.Generation {
				message = c.Message
				return nil
			}
		}
		return fmt.Errorf("no condition %s=%s %s", conditionType, status, reason)
	})
	return message
}

func (w world) available(t *testing.T, namespace, name string) {
	t.Helper()
	w.condition(t, namespace, name, "Available", "True", "Available")
}
