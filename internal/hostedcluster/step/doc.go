// Package step defines the parts of a HostedCluster's plan, as data, and the writer that carries them out: ordered steps, of which critical ones decide
// whether later ones run.
package step
