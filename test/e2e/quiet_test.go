//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// quietFor is how long a settled hosted cluster is watched.
const quietFor = 60 * time.Second

// settle is how long the cluster may take after the last change before the watch begins.
const settle = 3 * time.Minute

// staysQuiet compares the resource versions of everything that we write before and after a minute, and names what moved.
func staysQuiet(t *testing.T) {
	last := versions(t)
	eventually(t, settle, "a settled cluster", func() error {
		now := versions(t)
		moved := difference(last, now)
		last = now
		if len(moved) > 0 {
			return errMoved(moved)
		}
		return nil
	})
	before := versions(t)
	// The length of the observation is the point here; there is no event to wait for.
	timer := time.NewTimer(quietFor)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
	if moved := difference(before, versions(t)); len(moved) > 0 {
		t.Errorf("written while nothing changed: %s", strings.Join(moved, ", "))
	}
}

type errMoved []string

func (e errMoved) Error() string { return "still being written: " + strings.Join(e, ", ") }

// watchedKinds are the kinds that our operators write, without leases and the events about them.
var watchedKinds = []string{
	"hostedclusters", "hostedcontrolplanes", "controlplanecomponents", "namespaces", "secrets", "configmaps", "services", "serviceaccounts",
	"deployments", "statefulsets", "poddisruptionbudgets", "roles", "rolebindings", "networkpolicies", "persistentvolumeclaims",
	"clusterroles", "clusterrolebindings",
}

func versions(t testing.TB) map[string]string {
	t.Helper()
	found := map[string]string{}
	for prefix, k := range map[string]kubectl{"management": management(), "hosted": hosted()} {
		kinds := watchedKinds
		if prefix == "hosted" {
			kinds = []string{"namespaces", "secrets", "configmaps", "services", "endpointslices", "clusterroles", "clusterrolebindings", "roles", "rolebindings"}
		}
		var list struct {
			Items []struct {
				Kind     string
				Metadata struct{ Namespace, Name, ResourceVersion string }
			}
		}
		if err := json.Unmarshal([]byte(k.run(t, "get", strings.Join(kinds, ","), "-A", "-o", "json")), &list); err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			found[prefix+" "+item.Kind+" "+item.Metadata.Namespace+"/"+item.Metadata.Name] = item.Metadata.ResourceVersion
		}
	}
	return found
}

func difference(before, after map[string]string) []string {
	var moved []string
	for name, version := range after {
		if before[name] != version {
			moved = append(moved, name)
		}
	}
	return moved
}
