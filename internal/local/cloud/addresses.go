package cloud

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// ledger says which Service (by UID) has which address of the pool.
//
// It is kept in memory beside the statuses that it is built from, because the next Service may come before the cache
// shows what the last one got.
type ledger struct {
	pool  netip.Prefix
	owner map[netip.Addr]string
}

func newLedger(pool netip.Prefix) *ledger {
	return &ledger{pool: pool, owner: map[netip.Addr]string{}}
}

// claim notes that a Service has an address. It returns false when another one has it, or it is not of the pool.
func (l *ledger) claim(uid string, addr netip.Addr) bool {
	if !l.usable(addr) {
		return false
	}
	if have, taken := l.owner[addr]; taken {
		return have == uid
	}
	l.release(uid)
	l.owner[addr] = uid
	return true
}

// allocate gives the address that the Service has, or wants, or the lowest free one.
func (l *ledger) allocate(uid string, wanted netip.Addr) (netip.Addr, error) {
	for addr, have := range l.owner {
		if have == uid && (!wanted.IsValid() || wanted == addr) {
			return addr, nil
		}
	}
	if wanted.IsValid() {
		if l.claim(uid, wanted) {
			return wanted, nil
		}
		return netip.Addr{}, fmt.Errorf("address %s is not in the pool %s, or another Service has it; choose another one, or none", wanted, l.pool)
	}
	for addr := l.pool.Addr().Next(); l.usable(addr); addr = addr.Next() {
		if l.claim(uid, addr) {
			return addr, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("all %d addresses of the pool %s are in use; delete a Service of type LoadBalancer", len(l.owner), l.pool)
}

func (l *ledger) release(uid string) {
	maps.DeleteFunc(l.owner, func(_ netip.Addr, have string) bool { return have == uid })
}

// keep releases what belongs to Services that are not listed.
func (l *ledger) keep(uids []string) {
	maps.DeleteFunc(l.owner, func(_ netip.Addr, have string) bool { return !slices.Contains(uids, have) })
}

// usable leaves out the network's first and last address.
func (l *ledger) usable(addr netip.Addr) bool {
	return l.pool.Contains(addr) && addr != l.pool.Masked().Addr() && l.pool.Contains(addr.Next())
}
