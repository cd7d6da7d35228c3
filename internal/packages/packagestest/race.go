//go:build race

package packagestest

// Shadow is how many times more memory and processor time the race detector needs, at most.
const Shadow = 8
