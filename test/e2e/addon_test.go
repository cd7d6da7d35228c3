//go:build e2e

package e2e

import (
	"errors"
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
		// The tour has taken a worker away, which may have been the one that it ran on.
		eventually(t, time.Minute, "the add-on "+side.where, func() error {
			got, err := side.k.try(t, "get", "deployment", "-n", side.namespace, "hello", "-o", "jsonpath={.status.availableReplicas}")
			if err != nil || got != "1" {
				return errors.Join(fmt.Errorf("%q pods are available, want 1", got), err)
			}
			return nil
		})
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
