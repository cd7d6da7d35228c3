// Package support says what becomes of everything that a user can write: the fields of our kinds, annotations, flags of programs, and whole kinds.
// Each is heeded, refused, or not heeded here.
//
// It is the one place that says so. The operators read it for the condition AllFieldsHeeded and for what they refuse,
// docs/reference/support.md is generated from it, and tests walk the definitions, the commands and the constants of the API and fail for one
// that has no entry, or whose entry is wrong: they change what is said to be heeded and look for a change in what is rendered, and change what
// is said not to be heeded and look for none.
//
// An entry covers what lies below its path. There is no default: a field without an entry fails a test.
//
// What is not a platform's own is about releases of Kubernetes, on the platforms None and Local. Of releases of OpenShift
// AllFieldsHeeded says nothing.
package support
