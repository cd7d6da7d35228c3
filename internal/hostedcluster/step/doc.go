// Package step is what a plan of a HostedCluster consists of, as data, and the writer that carries it out: steps in their order, of which critical ones decide
// whether later ones run.
package step
