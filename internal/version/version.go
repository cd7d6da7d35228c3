// Package version says which build this is.
package version

// commit is set by the linker.
var commit = "unknown"

// Commit is the abbreviated git commit that the binary was built from, "unknown" outside a release build.
func Commit() string { return commit }
