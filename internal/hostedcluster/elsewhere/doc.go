// Package elsewhere keeps the policies of machines that are pods of another cluster, and remembers what became of them: that cluster may be far away.
package elsewhere
