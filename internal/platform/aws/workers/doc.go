// Package workers is what the control-plane-operator does in AWS for machines: it finds out whether AWS takes the tokens of the hosted cluster, and
// keeps the security group that every worker is in.
package workers
