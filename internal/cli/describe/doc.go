// Package describe shows a hosted cluster as a tree of what it consists of: what is not well, and why. What is well is counted.
package describe
