// Package teardown finds what local mode left on a machine, decides what is its own, and removes that.
//
// It goes by what is there, not by notes: processes by their control group, mounts by their place under the state folder,
// links by their bridge, tables by their name. So it works whatever was killed when, and a second run finds nothing.
package teardown
