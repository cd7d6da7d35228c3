//go:build race

package acceptance

// shadow is how many times more memory the race detector needs, at most.
const shadow = 8
