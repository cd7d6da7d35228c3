//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"
)

// addonDelivered looks with kubectl, on both sides, at the add-on that up delivers to the demo cluster.
func addonDelivered(t *testing.T) {
	for _, side := range []struct {
		where     string
		k         kubectl
		namespace string
	}{{"beside the control plane", management(), "clusters-demo"}, {"in the hosted cluster", hosted(), "default"}} {
		if got := side.k.run(t, "get", "deployment", "-n", side.namespace, "hello", "-o", "jsonpath={.status.availableReplicas}"); got != "1" {
			t.Errorf("%q pods of the add-on are available %s, want 1", got, side.where)
		}
	}
	if got := hosted().run(t, "get", "configmap", "-n", "default", "hello", "-o", "jsonpath={.data.cluster}"); got != "clusters/demo" {
		t.Errorf("the add-on says that it is in %q", got)
	}
	// What somebody breaks in the hosted cluster is put right from the management side.
	hosted().run(t, "delete", "configmap", "-n", "default", "hello")
	eventually(t, time.Minute, "the deleted ConfigMap", func() error {
		got, err := hosted().try(t, "get", "configmap", "-n", "default", "hello", "-o", "jsonpath={.data.cluster}")
		if err != nil || got != "clusters/demo" {
			return fmt.Errorf("it says %q (%w)", got, err)
		}
		return nil
	})
}
