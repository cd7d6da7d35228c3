//go:build !race

package packagestest

// Shadow is how many times more memory and processor time the race detector needs, which isn't there.
const Shadow = 1
