package testenv

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
)

func TestFreePorts(t *testing.T) {
	t.Run("When a port was given it should not be given again, though nobody listens on it", func(t *testing.T) {
		g := NewWithT(t)
		seen := map[int]bool{}
		for range 20 {
			ports, err := FreePorts(10)
			g.Expect(err).NotTo(HaveOccurred())
			for _, port := range ports {
				g.Expect(seen).NotTo(HaveKey(port))
				seen[port] = true
				l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(l.Close()).To(Succeed())
			}
		}
	})
	t.Run("When somebody has reserved a port, or listens on it, it should be left alone", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		ports, err := FreePorts(2)
		g.Expect(err).NotTo(HaveOccurred())

		lock, err := reserve(dir, ports[0])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(lock).NotTo(BeNil())
		g.Expect(reserve(dir, ports[0])).To(BeNil())
		g.Expect(lock.Close()).To(Succeed())
		again, err := reserve(dir, ports[0])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).NotTo(BeNil())
		g.Expect(again.Close()).To(Succeed())

		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[1])))
		g.Expect(err).NotTo(HaveOccurred())
		defer l.Close()
		g.Expect(reserve(dir, ports[1])).To(BeNil())
	})
	t.Run("When the folder cannot be written it should say which port it was about", func(t *testing.T) {
		_, err := reserve(filepath.Join(t.TempDir(), "none"), 20000)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("reserving port 20000")))
	})
}
