// Package follow shows what a hosted cluster tells: its events, and the logs of its control plane.
package follow
