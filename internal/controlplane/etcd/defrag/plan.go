package defrag

import (
	"fmt"
	"slices"
)

const (
	// minFragmentation is the share of the file, in percent, that must be unused, and minSize the size of the file in bytes from
	// which it is worth a pause of the member.
	minFragmentation = 45.0
	minSize          = 100 << 20
)

// member is what a member says of itself.
type member struct {
	url       string
	id        uint64
	leader    uint64 // as this member sees it; 0: none
	size      int64  // of the file, in bytes
	inUse     int64
	unhealthy string // why it does not answer as it should
}

func (m member) isLeader() bool { return m.id == m.leader }

// fragmentation is the unused share of the file in percent.
func (m member) fragmentation() float64 {
	if m.size <= 0 {
		return 0
	}
	return float64(m.size-m.inUse) / float64(m.size) * 100
}

// unhealthy says why the cluster must be left alone, empty when it is well: every member answers, and all know the same leader.
func unhealthy(members []member, want int) string {
	if len(members) != want {
		return fmt.Sprintf("%d of %d members were looked at", len(members), want)
	}
	for _, m := range members {
		switch {
		case m.unhealthy != "":
			return fmt.Sprintf("%s: %s", m.url, m.unhealthy)
		case m.leader == 0:
			return fmt.Sprintf("%s knows no leader", m.url)
		case m.leader != members[0].leader:
			return fmt.Sprintf("%s and %s know different leaders", members[0].url, m.url)
		}
	}
	return ""
}

// worthIt are the members to defragment, in this order: the leader last, because it hands its office on when it pauses.
func worthIt(members []member) []member {
	var chosen []member
	for _, m := range members {
		if m.size >= minSize && m.fragmentation() >= minFragmentation {
			chosen = append(chosen, m)
		}
	}
	slices.SortStableFunc(chosen, func(a, b member) int {
		switch {
		case a.isLeader() == b.isLeader():
			return 0
		case a.isLeader():
			return 1
		}
		return -1
	})
	return chosen
}
