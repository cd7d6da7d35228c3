//go:build bench

package rollout

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/packages/control/hostedclusterpackage"
	packagemanager "hcp.internal/platform/internal/packages/control/manager"
	"hcp.internal/platform/internal/testenv"
)

const (
	controllerEnv = "BENCH_CONTROLLER_KUBECONFIG" // makes this program the controller
	profileEnv    = "CPU_PROFILE"                 // a file for the profile of the controller
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	if path := os.Getenv(controllerEnv); path != "" {
		if err := control(ctrl.SetupSignalHandler(), path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(testenv.Main(m))
}

// control is the controller's process: its caches as the package operator sets them up, and no other controller.
func control(ctx context.Context, kubeconfig string) error {
	if path := os.Getenv(profileEnv); path != "" {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	cfg.QPS = -1
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: connect.Scheme(), Cache: packagemanager.CacheOptions(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: process.Queue()})
	if err != nil {
		return err
	}
	r := &hostedclusterpackage.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: namespace, Clock: clock.RealClock{},
		Events: &events.FakeRecorder{}}
	if err := r.SetupWithManager(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (x *bench) start(kubeconfig string) {
	x.Helper()
	self, err := os.Executable()
	must(x.B, err)
	x.controller = exec.Command(self)
	x.controller.Env = append(os.Environ(), controllerEnv+"="+kubeconfig)
	x.controller.Stderr = os.Stderr
	must(x.B, x.controller.Start())
	x.Cleanup(func() {
		_ = x.controller.Process.Signal(os.Interrupt)
		_ = x.controller.Wait()
	})
}

// cpu is what the controller has used, in seconds; clock ticks are 1/100 s on Linux.
func (x *bench) cpu() float64 {
	x.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", x.controller.Process.Pid))
	must(x.B, err)
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+2:]))
	user, err := strconv.ParseFloat(fields[11], 64)
	must(x.B, err)
	system, err := strconv.ParseFloat(fields[12], 64)
	must(x.B, err)
	return (user + system) / 100
}

// memory is the resident set of the controller in MiB.
func (x *bench) memory() int {
	x.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", x.controller.Process.Pid))
	must(x.B, err)
	pages, err := strconv.Atoi(strings.Fields(string(raw))[1])
	must(x.B, err)
	return pages * os.Getpagesize() >> 20
}
