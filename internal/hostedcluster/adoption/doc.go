// Package adoption assigns a hosted cluster its identity when the operator adopts it, and remembers those that were adopted just now.
package adoption
