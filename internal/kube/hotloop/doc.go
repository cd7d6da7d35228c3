// Package hotloop notices objects that are written again and again: two controllers that each put right what the other did, or one that
// never finds what it wrote. Such a loop breaks nothing by itself, so nobody sees it; it costs API servers, etcd and everybody who watches.
//
//	informers → Detector (counts, bounded) → decide (pure) → metric, log, event
//
// A Detector looks at what informers receive anyway, before the caches drop the managed fields: it needs no watch and no request of its own.
// Per object that was seen lately it keeps a version and counters. Only what is written often is taken apart, and no more after the loop was
// told. An episode is told when it begins and when it has ended.
package hotloop
