// Package get lists what a management cluster has, with how it is and why in one line.
package get
