// Package kube holds thin helpers that any controller may import: apply, patch, conditions and names.
package kube
