//go:build e2e && (aws || backup || brownfield || fleet || hosts || live || migration || openshift || sizes || upgrade)

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// hostedKubectl writes the kubeconfig of a hosted cluster into the state folder.
func hostedKubectl(t testing.TB, name string) kubectl {
	t.Helper()
	k := kubectl{filepath.Join(stateDir, name+".kubeconfig")}
	content := run(t, time.Minute, "hypershift", "create", "kubeconfig", "--name", name, kubeconfigFlag())
	if err := os.WriteFile(k.kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}
