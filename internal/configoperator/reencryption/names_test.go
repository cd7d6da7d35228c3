package reencryption

import (
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/encryption"
)

func TestRotationID(t *testing.T) {
	t.Run("When the data was taken back, by which the Secret with the keys has another version, progress of before should not count", func(t *testing.T) {
		live := encryption.LiveConfig{Hash: "same", Version: "uid/7"}
		before := rotationID("target", live)
		live.Version = "uid/8"
		NewWithT(t).Expect(rotationID("target", live)).NotTo(Equal(before))
	})
}
