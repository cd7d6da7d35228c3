// Package elsewhere maintains the network policies of machines that are pods of another cluster, and remembers the results, because that cluster may be slow
// to reach.
package elsewhere
