// Package sleep waits for time to pass.
package sleep
