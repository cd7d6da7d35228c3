package beside_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/platform/beside"
)

func TestClients(t *testing.T) {
	var clients beside.Clients[string, *int]
	opened := 0
	open := func() (*int, error) {
		opened++
		made := opened
		return &made, nil
	}
	t.Run("When a client can't be made it should be tried again", func(t *testing.T) {
		g := NewWithT(t)
		_, err := clients.Get("a", "", func() (*int, error) { return nil, errors.New("no credentials") })
		g.Expect(err).To(MatchError("no credentials"))
		g.Expect(clients.Get("a", "", open)).To(HaveValue(Equal(1)))
	})
	t.Run("When it was made it should be kept", func(t *testing.T) {
		NewWithT(t).Expect(clients.Get("a", "", open)).To(HaveValue(Equal(1)))
	})
	t.Run("When another account is asked for it should have a client of its own, and the first stay", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(clients.Get("b", "", open)).To(HaveValue(Equal(2)))
		g.Expect(clients.Get("a", "", open)).To(HaveValue(Equal(1)))
		g.Expect(opened).To(Equal(2))
	})
	t.Run("When the file of its credentials changes another should be made, of that account alone", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "credentials")
		g.Expect(clients.Get("c", file, open)).To(HaveValue(Equal(3)), "there is no file yet")
		g.Expect(os.WriteFile(file, []byte("old"), 0o600)).To(Succeed())
		g.Expect(clients.Get("c", file, open)).To(HaveValue(Equal(4)))
		g.Expect(clients.Get("c", file, open)).To(HaveValue(Equal(4)))
		g.Expect(os.WriteFile(file, []byte("new"), 0o600)).To(Succeed())
		_, err := clients.Get("c", file, func() (*int, error) { return nil, errors.New("nonsense") })
		g.Expect(err).To(MatchError("nonsense"), "what is of no use any more is not used on")
		g.Expect(clients.Get("c", file, open)).To(HaveValue(Equal(5)))
		g.Expect(clients.Get("a", "", open)).To(HaveValue(Equal(1)))
	})
}
