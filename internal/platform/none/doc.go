// Package none is the platform of hosted clusters whose machines nobody manages: the user brings nodes, or does without.
package none
