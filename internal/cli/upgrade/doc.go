// Package upgrade is the command "upgrade preview": what an upgrade of the product, or of a release, would change in every hosted cluster.
package upgrade
