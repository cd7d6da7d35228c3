//go:build !race

package rollout

// seedsByDefault are played in about 15 s.
const seedsByDefault = 600
