package unit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"sync"
)

// listen opens a notification socket. ready is closed at the first READY=1.
func listen(socket string, ready chan<- struct{}) (*net.UnixConn, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing the notification socket of a run before: %w", err)
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("opening the notification socket: %w", err)
	}
	var once sync.Once
	go func() { // ends when the socket is closed
		buf := make([]byte, 4<<10)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			if slices.ContainsFunc(bytes.Split(buf[:n], []byte("\n")), func(l []byte) bool { return bytes.Equal(l, []byte("READY=1")) }) {
				once.Do(func() { close(ready) })
			}
		}
	}()
	return conn, nil
}
