// Package comeback decides whether a control plane whose upgrade fails goes back to its previous release (decision 83).
package comeback
