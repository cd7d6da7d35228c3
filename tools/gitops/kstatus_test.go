package gitops

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// recorded are HostedClusters and Packages as the operators write their status. The name of each file begins with what kstatus is to find.
var recorded = map[string]string{
	"a hosted cluster": "../../internal/hostedcluster/status/testdata/rollup/*.yaml",
	"a package":        "../../internal/packages/engine/status/testdata/rollup/*.yaml",
}

// TestKstatus asks the library itself, which Flux and kpt use for kinds that they have no health checks for.
func TestKstatus(t *testing.T) {
	find := func(g *WithT, object map[string]any) status.Status {
		raw, err := json.Marshal(object)
		g.Expect(err).NotTo(HaveOccurred())
		obj := &unstructured.Unstructured{}
		g.Expect(obj.UnmarshalJSON(raw)).To(Succeed()) // whole numbers stay whole
		result, err := status.Compute(obj)
		g.Expect(err).NotTo(HaveOccurred())
		return result.Status
	}
	for what, pattern := range recorded {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no recorded states in %s: %v", pattern, err)
		}
		for _, file := range files {
			want, state, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
			t.Run("When "+what+" is in state "+state+" it should be "+want, func(t *testing.T) {
				g := NewWithT(t)
				raw, err := os.ReadFile(file)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(string(find(g, parse(t, string(raw))))).To(Equal(want))
			})
		}
	}
	for _, tc := range []struct {
		name, object string
		want         status.Status
	}{
		{"When machines are ready a pool should be current", pool(`{type: Ready, status: "True"}`), status.CurrentStatus},
		{"When machines are being made a pool should be in progress", pool(`{type: Ready, status: "False", reason: WaitingForAvailableMachines}`), status.InProgressStatus},
		{"When the newest template of a rollout was not seen it should be in progress", fleet(1, `{type: Progressing, status: "False"}`), status.InProgressStatus},
		{"When it was seen it should be current", fleet(2, `{type: Progressing, status: "False"}, {type: Available, status: "True"}`), status.CurrentStatus},
		// What kstatus can't tell without health checks: docs/gitops.md says so.
		{"When a hosted cluster is new it should be current, as nothing says otherwise", hc("", ``), status.CurrentStatus},
		{"When a package was judged by another operator, which says neither, it should be current", pkg(`{type: Available, status: "False", observedGeneration: 2}`), status.CurrentStatus},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(find(g, parse(t, tc.object))).To(Equal(tc.want))
		})
	}
}
