// Package kube contains thin helpers that any controller may import: apply, patch, conditions, names, events and limits.
package kube
