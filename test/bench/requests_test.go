//go:build bench

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hcp.internal/platform/internal/local/quiet"
)

// auditDelay is how far an audit log may be behind.
const auditDelay = time.Second

// requestsUntilAvailable reads from the audit log of a local cluster, which lies beside its kubeconfig, what the management API was asked while one hosted
// cluster came up: for it, and for everything else that runs. It reads after the last stage, so the log is to be looked at before it is rotated.
func (c *cluster) requestsUntilAvailable(b *testing.B, s *stages) (clients []quiet.Requests, total float64) {
	b.Helper()
	file := os.Getenv("KUBECONFIG")
	if c.flags.Kubeconfig != "" {
		file = c.flags.Kubeconfig
	}
	pause(b, auditDelay)
	log, err := os.Open(filepath.Join(filepath.Dir(file), "logs", "audit.log"))
	if err != nil {
		fmt.Printf("note: requests are not counted: %v\n", err)
		return nil, 0
	}
	defer log.Close()
	from, to := s.when(stageApplied), s.when(stageAvailable)
	if clients, err = quiet.ReadRequests(log, "management", from, to); err != nil {
		b.Fatal(err)
	}
	for i := range clients {
		total += float64(clients[i].Count)
	}
	return clients, total
}

// printRequests leaves out who asked less than one in a hundred.
func printRequests(title string, clients []quiet.Requests) {
	total, shown := 0, 0
	for i := range clients {
		total += clients[i].Count
	}
	t := newTable(title, "user", "program", "requests", "of them writes", "leases", "most of them")
	for _, r := range clients {
		if r.Count*100 < total {
			continue
		}
		shown += r.Count
		most := ""
		if len(r.What) > 0 {
			most = r.What[0]
		}
		t.add(r.User, r.Agent, fmt.Sprint(r.Count), fmt.Sprint(r.Writes), fmt.Sprint(r.Leases), most)
	}
	t.add("others", "", fmt.Sprint(total-shown), "", "", "")
	t.add("together", "", fmt.Sprint(total), "", "", "")
	t.print()
}
