// Package packages contains Package Operator. Its subpackages form three groups; each group imports only those to its left.
//
//	engine             author                        control
//	phases, probes,    files of a package: manifest, controllers, one for each kind, and what
//	owners, watches,   load, render, lock, build,    they share: manager, environment, metrics,
//	slices, status     push, validate, kickstart     rollouts over hosted clusters (rollout, pure)
//
// The CLI imports only author. packagestest and acceptance are for tests.
package packages
