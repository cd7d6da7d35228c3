// Package packages is the wing of Package Operator. Its rooms stand in three rows; each row knows those to its left only.
//
//	engine             author                        control
//	phases, probes,    files of a package: manifest, controllers, one for each kind, and what
//	owners, watches,   load, render, lock, build,    they share: manager, environment, metrics,
//	slices, status     push, validate, kickstart     rollouts over hosted clusters (rollout, pure)
//
// The CLI stands on author alone. packagestest and acceptance are for tests.
package packages
