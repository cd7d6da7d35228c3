package beside_test

import (
	"errors"
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
		_, err := clients.Get("a", func() (*int, error) { return nil, errors.New("no credentials") })
		g.Expect(err).To(MatchError("no credentials"))
		g.Expect(clients.Get("a", open)).To(HaveValue(Equal(1)))
	})
	t.Run("When it was made it should be kept", func(t *testing.T) {
		NewWithT(t).Expect(clients.Get("a", open)).To(HaveValue(Equal(1)))
	})
	t.Run("When another account is asked for it should have a client of its own, and the first stay", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(clients.Get("b", open)).To(HaveValue(Equal(2)))
		g.Expect(clients.Get("a", open)).To(HaveValue(Equal(1)))
		g.Expect(opened).To(Equal(2))
	})
}
