package release

import "testing"

func TestIsPayload(t *testing.T) {
	for version, want := range map[string]struct{ payload, kubernetes bool }{
		"4.21.0":       {payload: true},
		"5.0.0-ec.1":   {payload: true},
		"1.36.3":       {kubernetes: true},
		"v1.36.3":      {kubernetes: true},
		"":             {},
		"latest":       {},
		"1.36.3 or so": {},
	} {
		t.Run("When a version is "+version+" it should be a payload's, Kubernetes', or neither's", func(t *testing.T) {
			if got := IsPayload(version); got != want.payload {
				t.Errorf("payload: %t", got)
			}
			if got := IsKubernetes(version); got != want.kubernetes {
				t.Errorf("Kubernetes: %t", got)
			}
		})
	}
}
