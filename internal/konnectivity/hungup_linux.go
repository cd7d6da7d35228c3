package konnectivity

import "golang.org/x/sys/unix"

// hungUp tells that the other end of a socket sends no more, or that the connection is broken.
func hungUp(fd uintptr) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}, 0)
	return err == nil && n > 0
}
