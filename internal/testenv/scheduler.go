package testenv

import (
	"fmt"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// StartScheduler runs a real kube-scheduler until the test ends: pods of all namespaces are bound to nodes, where there are some that are ready and have room. It isn't shared, so that
// pods of other tests stay as these made them.
func (e *Env) StartScheduler(t testing.TB) *Process {
	t.Helper()
	path := e.dir + "/scheduler.kubeconfig"
	if err := clientcmd.WriteToFile(kubeconfig(e.Config), path); err != nil {
		t.Fatalf("writing the kubeconfig of kube-scheduler: %v", err)
	}
	ports, err := FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := StartProcess(e.binary, e.dir, "kube-scheduler", nil, "--kubeconfig="+path, "--leader-elect=false", "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0]),
		"--authentication-skip-lookup", "--authorization-always-allow-paths=*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}
