package connections

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestPlan(t *testing.T) {
	fine := Observed{Nodes: true, Agents: 1, LogsRead: true, Renewed: noon.Add(-10 * time.Second)}
	for name, tc := range map[string]struct {
		change       func(*Observed)
		data, plane  string
		recheckAfter time.Duration
	}{
		"When both ways work it should say so": {
			func(*Observed) {}, "True/AsExpected", "True/AsExpected", again,
		},
		"When there is no node it should not know": {
			func(o *Observed) { *o = Observed{} }, "Unknown/NoWorkerNodesAvailable", "Unknown/NoWorkerNodesAvailable", again,
		},
		"When the API is down it should not know": {
			func(o *Observed) { *o = Observed{Failed: errors.New("refused")} }, "Unknown/StatusUnknown", "Unknown/StatusUnknown", again,
		},
		"When no agent runs it should name the DaemonSet, and look again soon": {
			func(o *Observed) { o.Agents, o.LogsRead = 0, false }, "False/KonnectivityAgentPodsNotFound", "True/AsExpected", sooner,
		},
		"When no log can be read the tunnel is broken": {
			func(o *Observed) { o.Agents, o.LogsRead = 3, false }, "False/LogsAccessFailed", "True/AsExpected", sooner,
		},
		"When no node has ever renewed its lease the API is not reached": {
			func(o *Observed) { o.Renewed = time.Time{} }, "True/AsExpected", "False/KASAccessFailed", sooner,
		},
		"When the newest lease is just young enough it should be well": {
			func(o *Observed) { o.Renewed = noon.Add(-stale) }, "True/AsExpected", "True/AsExpected", again,
		},
		"When the newest lease is too old it should say since when": {
			func(o *Observed) { o.Renewed = noon.Add(-stale - time.Second) }, "True/AsExpected", "False/ConnectionCheckStale", sooner,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obs := fine
			tc.change(&obs)
			p := planFor(obs, 7, noon)
			g.Expect(string(p.Conditions[0].Status) + "/" + p.Conditions[0].Reason).To(Equal(tc.data))
			g.Expect(string(p.Conditions[1].Status) + "/" + p.Conditions[1].Reason).To(Equal(tc.plane))
			g.Expect(p.RecheckAfter).To(Equal(tc.recheckAfter))
			for _, c := range p.Conditions {
				g.Expect(c.ObservedGeneration).To(BeEquivalentTo(7))
				g.Expect(c.Message).NotTo(BeEmpty())
			}
		})
	}
}
