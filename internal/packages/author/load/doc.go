// Package load turns the files of a package into its parts: the manifest, the lock file, components, and the files that hold objects. It
// checks their form, and that they fit each other.
package load
