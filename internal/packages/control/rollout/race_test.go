//go:build race

package rollout

// seedsByDefault are fewer with the race detector, which makes each ten times slower: what it looks for is in every seed.
const seedsByDefault = 100
