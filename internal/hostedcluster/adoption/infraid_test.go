package adoption

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestInfraID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,60}[a-z0-9])?`).Draw(t, "name")
		id := InfraIDFor(name, "abcde")
		if len(id) > maxInfraID || strings.Contains(id, "--") || strings.Contains(id, ".") || !strings.HasSuffix(id, "-abcde") {
			t.Fatalf("%s gives %s", name, id)
		}
	})
}
