// Package kube holds thin helpers that any controller may import: apply, patch, conditions, names and the mapper of kinds.
package kube
