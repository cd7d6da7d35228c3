//go:build e2e && live

package e2e

import "testing"

// TestLiveQuiet needs a cluster that is up: bin/hypershift local up --state-dir /tmp/hcp-e2e. TestUp watches the same cluster before anything
// like that has happened to it, as make e2e has to be short.
func TestLiveQuiet(t *testing.T) {
	inOrder(t, []step{
		{"When all of its workers are ready it should be quiet", func(t *testing.T) {
			workersReady(t)
			staysQuiet(t)
		}},
		{"When workers, packages and the release have changed it should end well", muchLater},
		{"When all of that is behind it it should be quiet", staysQuiet},
		{"When the package of the fleet is deleted it should go", laterGone},
	})
}
