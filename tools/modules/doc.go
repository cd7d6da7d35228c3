// Package modules compares the go.mod files of this repository. A library that two modules have in the same version is compiled once for both; in
// another version, it and everything above it are compiled again. See docs/decisions/0099-modules-share-versions.md.
package modules
