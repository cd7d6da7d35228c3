//go:build e2e

package e2e

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// expectGone looks for what a destroyed hosted cluster may have left in the management cluster and on the machine.
func expectGone(t *testing.T, name string) {
	t.Helper()
	namespace := "clusters-" + name
	if out, err := management().try(t, "get", "namespace", namespace); err == nil {
		t.Errorf("the namespace is still there: %s", out)
	}
	clusterScoped := []string{"get", "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "name"}
	beside := []string{"get", "hostedclusters,nodepools,secrets,configmaps", "-n", "clusters", "-o", "name"}
	for _, args := range [][]string{clusterScoped, beside} {
		for object := range strings.FieldsSeq(management().run(t, args...)) {
			_, bare, _ := strings.Cut(object, "/")
			if bare == name || strings.HasPrefix(bare, name+"-") || strings.Contains(bare, namespace) {
				t.Errorf("%s is left", object)
			}
		}
	}
	// Volumes follow the objects. The node's logs of pods stay for up to a minute, until the kubelet's next round.
	eventually(t, time.Minute, "the end of volumes of "+name, func() error {
		claims, err := management().try(t, "get", "persistentvolumes", "-o", `jsonpath={range .items[*]}{.spec.claimRef.namespace}{"\n"}{end}`)
		if err != nil || slices.Contains(strings.Fields(claims), namespace) {
			return errors.Join(errors.New("a volume is left"), err)
		}
		return nil
	})
}
