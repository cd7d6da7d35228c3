// Package tour is what "hypershift local up" shows in the clusters that it made: one file for each stop. A stop does what a user would do,
// with the same commands, prints a few lines that stay on the screen, and leaves behind only what it says.
//
// A stop can be interrupted anywhere; the next "up" begins it anew. What has been shown once is not shown again until the cluster is made anew.
package tour
