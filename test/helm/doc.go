// Package helm judges the chart of `hypershift install helm` by the real Helm, from its module: what it renders, and how it installs, upgrades, rolls
// back and uninstalls on a real API server. It is a module of its own, so that what Helm depends on bends nothing of ours.
package helm
