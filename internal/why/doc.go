// Package why finds one root cause for what is wrong with an object.
//
// It is pure: a Snapshot holds what was read of both sides, Explain walks it. The knowledge is a table of rules. A rule is a symptom of one kind of
// object, the objects to ask next, and what to do when none of these knows more. Every rule has a section in docs/why.md and a row in a test.
//
//	HostedCluster ─ Available=False ─► HostedControlPlane ─ EtcdAvailable=False ─► StatefulSet etcd ─► Pod etcd-1 ─ fits on no node
//	      symptom, first link                                                                           root cause, last link
//
// What does not end by itself goes before what somebody has stopped, and that before what is under way; among equals the rule that stands first in
// the table goes first. The same snapshot always gives the same answer. Texts of others are bounded, on one line and without credentials.
//
// Package observe, beside it, fills a Snapshot with few requests. A snapshot with nothing but the object in question works, too: the answer is then
// what the object says by itself, which is enough for a column of a table.
package why
