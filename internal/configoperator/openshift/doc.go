// Package openshift says what the hosted-cluster-config-operator keeps in a hosted cluster whose release is an OpenShift payload: the settings of
// config.openshift.io, what operators of the payload are told, aggregated APIs, copies of credentials, and what goes back to the control plane.
//
//	Input (read before) ── list of Steps, all pure ──▶ Actions ── Executor ──▶ hosted API, control plane namespace
//
// A Step makes Actions, each about one object. What is ours alone is applied as a whole. What others write, too, such as the objects of
// config.openshift.io, is edited: a pure function changes what was read just before, and it is written when that made a difference.
//
// There are no Go types for these kinds here: each object has exactly the fields that are written, and everything that the hosted cluster
// holds beside them, of whatever version, stays. The module github.com/openshift/api would add zero values that nobody asked for, and nothing else.
//
// Kinds that the cluster-version-operator defines may come late; until then their Actions fail with ErrNoKind, and the condition names them.
package openshift
