package testenv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Ports of tests lie below those that the kernel gives to outgoing connections and to listeners on port 0 (from 32768 unless it
// is told otherwise), and below the node ports (from 30000): between the choice of a port and the moment a program listens on it,
// nobody gets it by chance.
const (
	firstPort = 20000
	lastPort  = 29999
)

// reserved holds the locks of this process's ports, by which other test binaries know that they are taken, also while nobody
// listens on them. The kernel lets go of them when this process ends.
var reserved struct {
	sync.Mutex
	locks []*os.File
}

// FreePorts returns n loopback ports that nobody listens on and no other test gets as long as this process lives.
func FreePorts(n int) ([]int, error) {
	reserved.Lock()
	defer reserved.Unlock()
	dir := filepath.Join(os.TempDir(), "hcp-testenv.ports."+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder of reserved ports: %w", err)
	}
	ports := make([]int, 0, n)
	for _, i := range rand.Perm(lastPort - firstPort + 1) {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + i
		lock, err := reserve(dir, port)
		if err != nil {
			return nil, err
		}
		if lock != nil {
			reserved.locks = append(reserved.locks, lock)
			ports = append(ports, port)
		}
	}
	return nil, fmt.Errorf("fewer than %d ports between %d and %d are free; programs that listen there are in the way: ss -ltnp", n, firstPort, lastPort)
}

// reserve returns the lock of a port, or none when it is taken.
func reserve(dir string, port int) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("reserving port %d: %w", port, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, fmt.Errorf("reserving port %d: %w", port, err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		lock.Close()
		return nil, nil //nolint:nilerr // because somebody else has the port
	}
	return lock, l.Close()
}
