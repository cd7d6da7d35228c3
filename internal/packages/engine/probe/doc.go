// Package probe decides whether objects count as available: by a condition, by two fields that are equal, or by a rule in CEL.
package probe
