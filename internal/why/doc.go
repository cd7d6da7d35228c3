// Package why finds one root cause for what is wrong with an object.
//
// It is pure: a Snapshot contains what was read of both sides, and Explain walks it. The knowledge is a table of rules. A rule is a symptom of one kind
// of object, the objects to check next, and what to do if none of these explains more. Every rule has a section in docs/why.md and a row in a test.
//
//	HostedCluster ─ Available=False ─► HostedControlPlane ─ EtcdAvailable=False ─► StatefulSet etcd ─► Pod etcd-1 ─ fits on no node
//	      symptom, first link                                                                           root cause, last link
//
// Problems that don't resolve themselves come first, then what someone has stopped, then what is in progress; among equals, the first rule in the
// table wins. The same snapshot always gives the same answer. Texts from elsewhere are limited in length, on one line and without credentials.
//
// Package observe, beside it, fills a Snapshot with few requests. A snapshot that contains only the object in question works, too: the answer is then
// what the object itself reports, which is enough for a column of a table.
package why
