//go:build !race

package acceptance

// shadow is how many times more memory the race detector needs, which isn't there.
const shadow = 1
