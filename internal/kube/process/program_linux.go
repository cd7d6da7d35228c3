package process

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ForgetProgram gives back the pages of the program itself, of which starting needs far more than running: half of what an idle operator has
// in memory. Those that are needed after all come back by themselves, most often from the system's cache. It returns how many bytes of address
// space that was about.
//
// Only mappings that nobody can have written to are given back, so nothing can be lost.
func ForgetProgram() (int, error) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return 0, fmt.Errorf("finding the program: %w", err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0, fmt.Errorf("finding the program in memory: %w", err)
	}
	defer func() { _ = maps.Close() }() // nothing was written
	total := 0
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		start, length, ok := readOnly(lines.Text(), self)
		if !ok {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, start, length, unix.MADV_DONTNEED); errno != 0 {
			return total, fmt.Errorf("giving back pages of the program: %w", errno)
		}
		total += int(length) // a program is smaller than that
	}
	return total, nil
}

// readOnly reads a line of /proc/self/maps, such as "00400000-04a3b000 r-xp 00000000 08:01 1234 /usr/bin/x", and says whether it is a part of file
// that can't be written to.
func readOnly(line, file string) (start, length uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 6 || fields[5] != file || len(fields[1]) != 4 || fields[1][0] != 'r' || fields[1][1] == 'w' || fields[1][3] != 'p' {
		return 0, 0, false
	}
	from, to, found := strings.Cut(fields[0], "-")
	a, errA := strconv.ParseUint(from, 16, 64)
	b, errB := strconv.ParseUint(to, 16, 64)
	if !found || errA != nil || errB != nil || b <= a {
		return 0, 0, false
	}
	return uintptr(a), uintptr(b - a), true
}
