package hotloop

import "time"

// slots is into how many parts Window is divided: what counts is forgotten part by part.
const slots = 10

// window counts what happened within the last Window. The zero value is empty.
type window struct {
	counts [slots]uint32
	newest int64 // number of the newest slot since 1970
}

func slotOf(now time.Time) int64 { return now.UnixNano() / int64(Window/slots) }

func (w *window) add(now time.Time) {
	w.forget(now)
	w.counts[w.newest%slots]++
}

func (w *window) sum(now time.Time) int {
	w.forget(now)
	total := 0
	for _, n := range w.counts {
		total += int(n)
	}
	return total
}

// forget empties the slots that are too old. A clock that goes back changes nothing.
func (w *window) forget(now time.Time) {
	slot := slotOf(now)
	if slot-w.newest >= slots {
		w.counts = [slots]uint32{}
		w.newest = slot
	}
	for w.newest < slot {
		w.newest++
		w.counts[w.newest%slots] = 0
	}
}
