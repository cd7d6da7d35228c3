package supervisor

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// StartTime is when a process started, in clock ticks since boot. Together with the PID it names a process for good.
func StartTime(pid int) (uint64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStartTime(string(data))
}

// parseStartTime reads field 22 of /proc/<pid>/stat. The second field is a name in parentheses that may hold anything.
func parseStartTime(stat string) (uint64, error) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, fmt.Errorf("no process name in %q", stat)
	}
	fields := strings.Fields(stat[end+1:])
	const startTimeField = 22 - 3 // the first field after the name is number 3
	if len(fields) <= startTimeField {
		return 0, fmt.Errorf("only %d fields in %q", len(fields), stat)
	}
	if fields[0] == "Z" {
		return 0, fmt.Errorf("process has ended")
	}
	return strconv.ParseUint(fields[startTimeField], 10, 64)
}
