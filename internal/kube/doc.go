// Package kube holds thin helpers that any controller may import: apply, patch and conditions.
package kube
