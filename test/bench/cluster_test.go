//go:build bench

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
)

// stateDir is fixed, so that the next run finds and removes what a killed one left behind.
const stateDir = "/tmp/hcp-bench"

const (
	upTimeout   = 20 * time.Minute // with everything built
	downTimeout = 3 * time.Minute
)

// cluster is the local cluster that hosted clusters are made on.
type cluster struct {
	flags connect.Flags
	api   client.WithWatch
}

var theCluster struct {
	once    sync.Once
	mu      sync.Mutex
	started bool // by us
	*cluster
}

// local returns the local cluster that runs, or starts one.
func local(b *testing.B) *cluster {
	b.Helper()
	theCluster.once.Do(func() {
		if os.Geteuid() != 0 {
			b.Fatal("this reads the memory of other users' processes and may start a node; run it as root")
		}
		c := running(b)
		if c == nil {
			c = start(b)
		}
		c.emptyNamespace(b)
		theCluster.cluster = c
	})
	if theCluster.cluster == nil {
		b.Fatal("there is no local cluster; see the first error")
	}
	return theCluster.cluster
}

// running is the cluster of $KUBECONFIG, which must answer, or the one in .local if it does.
func running(b *testing.B) *cluster {
	b.Helper()
	flags, named := connect.Flags{}, os.Getenv("KUBECONFIG") != ""
	if !named {
		flags.Kubeconfig = filepath.Join(root(b), ".local", "kubeconfig")
		if _, err := os.Stat(flags.Kubeconfig); err != nil {
			return nil
		}
	}
	c, err := dial(b.Context(), flags)
	switch {
	case err == nil:
		return c
	case named:
		b.Fatalf("the cluster of $KUBECONFIG does not answer, or has no operator: %v; unset it to have one started", err)
	}
	return nil
}

func start(b *testing.B) *cluster {
	b.Helper()
	theCluster.mu.Lock()
	defer theCluster.mu.Unlock()
	dir := root(b)
	if out, err := hypershift(dir, downTimeout, "down"); err != nil {
		b.Fatalf("removing what a killed run left behind: %v\n%s", err, out)
	}
	fmt.Println("starting a local cluster in " + stateDir)
	theCluster.started = true
	if out, err := hypershift(dir, upTimeout, "up", "--skip-demo"); err != nil {
		b.Fatalf("starting a local cluster: %v\n%s", err, out)
	}
	c, err := dial(b.Context(), connect.Flags{Kubeconfig: filepath.Join(stateDir, "kubeconfig")})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// stopCluster takes down what start started, or leaves a cluster of others as it was.
func stopCluster() {
	theCluster.mu.Lock()
	defer theCluster.mu.Unlock()
	if !theCluster.started {
		if theCluster.cluster != nil {
			if err := theCluster.removeNamespace(); err != nil {
				fmt.Fprintf(os.Stderr, "deleting namespace %s: %v\n", namespace, err)
			}
		}
		return
	}
	theCluster.started = false
	dir, err := filepath.Abs("../..")
	if err == nil {
		var out string
		if out, err = hypershift(dir, downTimeout, "down"); err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "taking the local cluster down: %v\nrun bin/hypershift local down --state-dir %s\n", err, stateDir)
	}
}

// hypershift runs "hypershift local" on our state folder.
func hypershift(dir string, timeout time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "bin", "hypershift"), append([]string{"local"}, append(args, "--state-dir", stateDir)...)...)
	cmd.Dir = dir
	// It undoes what it has begun when it is interrupted.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// A detached child must not keep Wait from returning through an inherited pipe.
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("no end after %s: %w", timeout, ctx.Err())
	}
	return out.String(), err
}

func root(b *testing.B) string {
	b.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		b.Fatal(err)
	}
	return dir
}

// dial makes a client and makes sure that the cluster knows hosted clusters.
func dial(ctx context.Context, flags connect.Flags) (*cluster, error) {
	config, err := flags.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = 0 // it would end watches, too
	api, err := client.NewWithWatch(config, client.Options{Scheme: connect.Scheme()})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := api.List(ctx, &hyperv1.HostedClusterList{}, client.Limit(1)); err != nil {
		return nil, err
	}
	return &cluster{flags: flags, api: api}, nil
}

// pods lists the running pods that selectors choose.
func (c *cluster) pods(b *testing.B, opts ...client.ListOption) []corev1.Pod {
	b.Helper()
	list := &corev1.PodList{}
	if err := c.api.List(b.Context(), list, append(opts, client.Limit(1000))...); err != nil {
		b.Fatalf("listing pods: %v", err)
	}
	var out []corev1.Pod
	for _, p := range list.Items {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp.IsZero() {
			out = append(out, p)
		}
	}
	return out
}

// explain is what a person would look at first when a hosted cluster is not available in time.
func (c *cluster) explain(names ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var out strings.Builder
	for _, name := range names {
		hc := &hyperv1.HostedCluster{}
		if err := c.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, hc); err != nil {
			fmt.Fprintf(&out, "%s: %v\n", name, err)
			continue
		}
		if cond := meta.FindStatusCondition(hc.Status.Conditions, hyperv1.HostedClusterAvailable); cond != nil {
			fmt.Fprintf(&out, "%s: Available is %s: %s: %s\n", name, cond.Status, cond.Reason, cond.Message)
		} else {
			fmt.Fprintf(&out, "%s: has no condition Available; does the operator run?\n", name)
		}
		pods := &corev1.PodList{}
		if err := c.api.List(ctx, pods, client.InNamespace(controlPlane(name)), client.Limit(100)); err != nil {
			fmt.Fprintf(&out, "%s: %v\n", name, err)
		}
		for _, p := range pods.Items {
			for _, cond := range p.Status.Conditions {
				if cond.Status != corev1.ConditionTrue && cond.Message != "" {
					fmt.Fprintf(&out, "  %s: %s is %s: %s\n", p.Name, cond.Type, cond.Status, cond.Message)
				}
			}
		}
	}
	return out.String()
}
