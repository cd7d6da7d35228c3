package main

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

func TestPageIsFresh(t *testing.T) {
	g := NewWithT(t)
	have, err := os.ReadFile("../../../docs/reference/support.md")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(have)).To(Equal(string(Page())), "run make generate")
}
