package rolls

import "time"

// Settle is how long after a request another program may take to work out what follows from it for machines, such as an operator that generates
// configuration. What machines are made from may change until then, and counts as asked for.
const Settle = 10 * time.Minute

// Request identifies what users asked for, so far as machines may follow from it.
type Request struct {
	// Spec is a digest of the specs, and Generation their generations. A digest alone may change with the operator, as when a field gets a default, and a
	// generation alone by what is no matter of machines.
	Spec       string `json:"spec"`
	Generation string `json:"generation"`
	// Content is a digest of what the specs refer to, and of facts about the cluster that no operator chooses.
	Content string `json:"content"`
}

// differs tells whether users asked for something else in between.
func (r Request) differs(from Request) bool {
	return r.Content != from.Content || r.Spec != from.Spec && r.Generation != from.Generation
}

// Unrequested tells whether machines of hash would be made although nobody asked for a change since those of the note were. A note that is not known, or of
// an operator that did not note requests, tells nothing, and what is allowed by its hash was asked for. What is held stays held, whatever else users
// change, for as long as it is the same hash.
func (n Note) Unrequested(known bool, hash string, asked Request, allowed string, now time.Time) bool {
	switch {
	case !known || n.Request == nil || hash == n.Hash || allowed == hash:
		return false
	case n.Held == hash:
		return true
	case asked.differs(*n.Request):
		return false
	}
	return now.Sub(n.Asked) >= Settle
}

// Noting adds what users ask for now to a note, and whether machines of another hash are held; false: that stands there already.
func (n Note) Noting(asked Request, held string, now time.Time) (Note, bool) {
	switch {
	case n.Request == nil || asked.differs(*n.Request):
		n.Asked = now.UTC().Truncate(time.Second)
	case *n.Request == asked && n.Held == held:
		return n, false
	}
	n.Request, n.Held = &asked, held
	return n, true
}
