//go:build e2e && install

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
)

// backAndForth takes the operators back to the version before and up again, by the page's own commands, under the eyes of a client of the hosted cluster:
// no request of it fails, no pod of its control plane is another one, no key is made anew, its node stays, and in the end all is wanted as it was.
func (r *reader) backAndForth(upgrade block) {
	r.Helper()
	g := NewWithT(r.T)
	folder := os.Getenv(beforeVariable)
	if folder == "" {
		r.Log("no version before this one was named: nothing goes back")
		return
	}
	raw, err := os.ReadFile(filepath.Join(folder, "internal", "version", "VERSION"))
	g.Expect(err).NotTo(HaveOccurred())
	r.settles()
	pods, keys, wanted := r.controlPlane(), r.keys(), r.wanted()
	calls := startCaller(r.T, filepath.Join(r.dir, "first.kubeconfig"))

	r.use(folder)
	r.runsBlock(upgrade)
	r.isAt(strings.TrimSpace(string(raw)))
	r.settles()
	r.same("pods of the control plane", pods, r.controlPlane())
	r.nodeIsReady()

	r.use("")
	r.runsBlock(upgrade)
	r.isUpgraded()
	r.settles()
	calls.expectNone(r.T, "operators of this version, the one before and this one again")
	r.same("pods of the control plane", pods, r.controlPlane())
	r.nodeIsReady()
	for what, pair := range map[string][2]map[string]string{"a Secret": {keys, r.keys()}, "what is wanted": {wanted, r.wanted()}} {
		for _, difference := range differences(pair[0], pair[1]) {
			r.Errorf("%s changed by going back and forth: %s", what, difference)
		}
	}
}

func (r *reader) runsBlock(b block) {
	r.Helper()
	begin := time.Now()
	out, err := r.run(b.commands)
	r.Logf("%s again, after %s:\n%s", b.heading, time.Since(begin).Round(time.Second), out)
	if err != nil {
		r.Fatalf("block %q: %v", b.heading, err)
	}
}

// settles waits until the operator has looked at the hosted cluster and wants nothing more of it.
func (r *reader) settles() {
	r.Helper()
	steady, since := "", time.Now()
	eventually(r.T, 5*time.Minute, "the hosted cluster to settle", func() error {
		out, err := hosted().try(r.T, "get", "hostedcluster", "-n", "clusters", first, "-o",
			`jsonpath={.metadata.generation} {range .status.conditions[*]}{.type}={.status}@{.observedGeneration} {end}`)
		now := fmt.Sprint(r.wanted(), out)
		if now != steady {
			steady, since = now, time.Now()
		}
		switch {
		case err != nil:
			return err
		case !strings.Contains(out, " Available=True@") || !strings.Contains(out, " Progressing=False@"):
			return errors.New(out)
		case time.Since(since) < settled:
			return fmt.Errorf("something changed %s ago", time.Since(since).Round(time.Second))
		}
		return nil
	})
}

// settled is how long nothing may change: longer than a leader of before needs to hand over, and its successor for a first look at everything.
const settled = 40 * time.Second

// same expects the same text twice.
func (r *reader) same(what, was, is string) {
	r.Helper()
	if was != is {
		r.Errorf("%s changed: they were\n%s\nand are\n%s", what, was, is)
	}
}

// keys are the Secrets of the control plane by a hash of their content.
func (r *reader) keys() map[string]string {
	r.Helper()
	return r.hashes("secrets", func(o map[string]any) any { return o["data"] })
}

// wanted is what controllers want in the control plane's namespace, by a hash, without what the API server and other controllers say of it.
func (r *reader) wanted() map[string]string {
	r.Helper()
	kinds := "deployments,statefulsets,daemonsets,services,configmaps,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets,hostedcontrolplanes"
	return r.hashes(kinds, func(o map[string]any) any {
		delete(o, "status")
		delete(o, "metadata")
		return o
	})
}

// hashes are the objects of kinds by a hash of a part of each.
func (r *reader) hashes(kinds string, part func(map[string]any) any) map[string]string {
	r.Helper()
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal([]byte(hosted().run(r.T, "get", kinds, "-n", "clusters-"+first, "-o", "json")), &list); err != nil {
		r.Fatal(err)
	}
	hashes := map[string]string{}
	for _, o := range list.Items {
		metadata, _ := o["metadata"].(map[string]any)
		name := fmt.Sprintf("%v/%v", o["kind"], metadata["name"])
		raw, err := json.Marshal(part(o))
		if err != nil {
			r.Fatal(err)
		}
		sum := sha256.Sum256(raw)
		hashes[name] = hex.EncodeToString(sum[:8])
	}
	if len(hashes) == 0 {
		r.Fatalf("there are no %s of the hosted cluster", kinds)
	}
	return hashes
}

// differences names what is only in one of two, or differs.
func differences(was, is map[string]string) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if now, there := is[name]; !there {
			found = append(found, name+" is gone")
		} else if now != was[name] {
			found = append(found, name+" has another content")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, there := was[name]; !there {
			found = append(found, name+" is new")
		}
	}
	return found
}
