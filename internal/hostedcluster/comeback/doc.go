// Package comeback decides whether a control plane whose upgrade fails goes back to the release of before (decision 83).
package comeback
