//go:build bench

package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane"
	"hcp.internal/platform/internal/testenv"
	"hcp.internal/platform/internal/testenv/bare"
)

// programs of a control plane without operators.
var programs = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// floorFigures are medians of several runs.
type floorFigures struct {
	ready    float64 // seconds from the start until kube-apiserver is ready
	cpu      float64 // seconds used by all programs until then
	cpuOf    map[string]float64
	memory   memory // after settling
	memoryOf map[string]memory
}

var theFloor struct {
	once    sync.Once
	figures *floorFigures
}

// floor is measured once in a run of this program, before anything else is started.
func floor(b *testing.B) *floorFigures {
	b.Helper()
	theFloor.once.Do(func() {
		// A file of its own shares no pages with a management cluster that runs, nor with the image of hosted clusters.
		b.Setenv(testenv.BinaryEnv, copyOf(b, testenv.KubeBinary(b)))
		var all []floorFigures
		for i := range runs {
			fmt.Printf("floor: run %d of %d\n", i+1, runs)
			all = append(all, floorRun(b))
		}
		theFloor.figures = medianFloor(all)
	})
	if theFloor.figures == nil {
		b.Fatal("there is no floor to compare with; see the first error")
	}
	return theFloor.figures
}

func copyOf(b *testing.B, file string) string {
	b.Helper()
	from, err := os.Open(file)
	if err != nil {
		b.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(b.TempDir(), filepath.Base(file)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		b.Fatal(err)
	}
	_, err = io.Copy(to, from)
	// Written out now, not while programs start.
	if err := errors.Join(err, to.Sync(), to.Close()); err != nil {
		b.Fatalf("copying %s: %v", file, err)
	}
	return to.Name()
}

// asCreated is what `hypershift create cluster local` makes of a control plane, as far as it changes arguments.
func asCreated(hcp *hyperv1.HostedControlPlane) {
	hcp.Spec.Networking.AllocateNodeCIDRs = ptr.To(hyperv1.AllocateNodeCIDRsEnabled)
	hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{
		Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "key"}},
	}
}

func floorRun(b *testing.B) floorFigures {
	b.Helper()
	objs := append(bare.Credentials(b), bare.EncryptionKey("key", "k"))
	pods, others := bare.Render(b, bare.Context(b, bare.HostedControlPlane(asCreated), objs...), controlplane.Components())
	m := bare.NewMachine(b, append(objs, others...))
	defer m.Stop()

	running := map[string]*testenv.Process{}
	begin := time.Now()
	for _, name := range programs {
		running[name] = m.Start(name, pods[name])
	}
	m.Answers(b.Context(), "https", "api", "/readyz")
	f := floorFigures{ready: time.Since(begin).Seconds(), cpuOf: map[string]float64{}, memoryOf: map[string]memory{}}
	for name, p := range running {
		used, err := cpuOf(p.PID())
		if err != nil {
			b.Fatalf("reading the CPU time of %s: %v", name, err)
		}
		f.cpuOf[name] = used
	}
	m.Answers(b.Context(), "https", "kube-controller-manager", "/healthz")
	m.Answers(b.Context(), "https", "kube-scheduler", "/readyz")
	pause(b, settle)
	for name, p := range running {
		used, err := memoryOf(p.PID())
		if err != nil {
			b.Fatalf("reading the memory of %s: %v", name, err)
		}
		f.memoryOf[name] = used
	}
	return f
}

// medianFloor takes each figure's median by itself, and sums of medians, so that a table adds up.
func medianFloor(all []floorFigures) *floorFigures {
	of := func(figure func(floorFigures) float64) float64 {
		var values []float64
		for _, f := range all {
			values = append(values, figure(f))
		}
		return median(values)
	}
	out := &floorFigures{
		ready: of(func(f floorFigures) float64 { return f.ready }),
		cpuOf: map[string]float64{}, memoryOf: map[string]memory{},
	}
	for _, name := range programs {
		out.cpuOf[name] = of(func(f floorFigures) float64 { return f.cpuOf[name] })
		out.memoryOf[name] = memory{
			rss: of(func(f floorFigures) float64 { return f.memoryOf[name].rss }),
			pss: of(func(f floorFigures) float64 { return f.memoryOf[name].pss }),
		}
		out.cpu += out.cpuOf[name]
		out.memory = out.memory.plus(out.memoryOf[name])
	}
	return out
}
