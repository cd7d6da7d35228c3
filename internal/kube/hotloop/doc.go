// Package hotloop detects objects that are written again and again: two controllers that each revert what the other did, or one that
// never finds what it wrote. Such a loop breaks nothing by itself, so nobody notices it, but it puts load on API servers, etcd and every watcher.
//
//	informers → Detector (counts, bounded) → decide (pure) → metric, log, event
//
// A Detector examines what informers receive anyway, before the caches drop the managed fields: it needs no watch and no request of its own.
// For each object seen lately, it keeps a version and counters. It compares only objects that are written often, and stops comparing once the loop
// has been reported. An episode is reported when it begins and when it has ended.
package hotloop
