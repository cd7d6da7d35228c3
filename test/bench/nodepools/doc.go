// Package nodepools measures the NodePool controller over many pools: 200 of 50 machines each, with a real API server and a played provider.
//
// It prints what a steady state writes, and the processor time and memory that a change of the configuration of all pools takes. Cluster API
// does not run; its objects are there. BENCH_POOLS and BENCH_MACHINES give other sizes.
package nodepools
