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
	// pressing is the share of the quota, in percent, from which a member is defragmented though others can't answer meanwhile, if that gives at least
	// worthPressing percent of the file back: some seconds without etcd are less than an etcd that takes no writes.
	pressing      = 80
	worthPressing = 10
	// roomAgain is the share of the quota, in percent, below which every member must be before the alarm is disarmed. Otherwise it would be back at once.
	roomAgain = 90
	// defaultQuota is what a member that does not tell its quota (etcd before 3.6) is taken to have: what we configure.
	defaultQuota = 8 << 30
)

// member is what a member says of itself.
type member struct {
	url       string
	id        uint64
	leader    uint64 // as this member sees it; 0: none
	size      int64  // of the file, in bytes
	inUse     int64
	quota     int64  // of the file
	revision  int64  // of the last write that it knows
	noSpace   bool   // it has raised the alarm NOSPACE, or another member told it so
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

// isPressing says whether the member should be defragmented before it is full.
func (m member) isPressing() bool {
	return m.quota > 0 && m.size*100 >= m.quota*pressing && m.fragmentation() >= worthPressing
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

// worthIt are the members to defragment, in the order of leaderLast. A single member is chosen only before it is full: nobody else answers meanwhile.
func worthIt(members []member) []member {
	var chosen []member
	for _, m := range members {
		fragmented := m.fragmentation() >= minFragmentation && len(members) > 1
		if m.size >= minSize && (fragmented || m.isPressing()) {
			chosen = append(chosen, m)
		}
	}
	return leaderLast(chosen)
}

// leaderLast sorts members so that the leader comes last, because it hands its office on when it pauses.
func leaderLast(members []member) []member {
	members = slices.Clone(members)
	slices.SortStableFunc(members, func(a, b member) int {
		switch {
		case a.isLeader() == b.isLeader():
			return 0
		case a.isLeader():
			return 1
		}
		return -1
	})
	return members
}

// noSpace says whether a member has raised the alarm.
func noSpace(members []member) bool {
	return slices.ContainsFunc(members, func(m member) bool { return m.noSpace })
}

// hasRoom says whether every member has room for writes again.
func hasRoom(members []member) bool {
	return !slices.ContainsFunc(members, func(m member) bool { return m.size*100 >= m.quota*roomAgain })
}

// Space is how much room the database of an etcd has. Sizes are in bytes, of its largest member.
type Space struct {
	// Etcd is the name of its StatefulSet.
	Etcd string
	// Size is that of the file, InUse the part that holds data, Quota what the file may grow to.
	Size, InUse, Quota int64
	// Full is true while etcd refuses writes.
	Full bool
}

// spaceOf sums members up. It is zero when none has answered.
func spaceOf(name string, members []member) Space {
	s := Space{Etcd: name, Full: noSpace(members)}
	for _, m := range members {
		s.Size, s.InUse, s.Quota = max(s.Size, m.size), max(s.InUse, m.inUse), max(s.Quota, m.quota)
	}
	return s
}
