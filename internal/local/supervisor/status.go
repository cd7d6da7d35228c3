package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"hcp.internal/platform/internal/atomicfile"
)

// ProcessStatus is what is known of one supervised process.
type ProcessStatus struct {
	Name      string    `json:"name"`
	PID       int       `json:"pid,omitempty"`
	StartTime uint64    `json:"startTime,omitempty"` // clock ticks since boot, as in /proc/<pid>/stat
	Ready     bool      `json:"ready"`
	Since     time.Time `json:"since"`
	Restarts  int       `json:"restarts"`
	LastExit  string    `json:"lastExit,omitempty"`
	Waiting   string    `json:"waiting,omitempty"` // why it does not run now
}

// Status is what the supervisor writes to its status file on every change.
type Status struct {
	PID        int             `json:"pid"`
	StartTime  uint64          `json:"startTime"`
	ConfigHash string          `json:"configHash"`
	Processes  []ProcessStatus `json:"processes"`
}

// ReadStatus reads the file that a supervisor wrote, which may be dead by now: check with Alive.
func ReadStatus(path string) (*Status, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Status{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", path, err)
	}
	return s, nil
}

// Alive tells whether the supervisor that wrote the status still runs.
func (s *Status) Alive() bool {
	start, err := StartTime(s.PID)
	return s.PID > 0 && err == nil && start == s.StartTime
}

// NotReady names the processes that are not ready.
func (s *Status) NotReady() []string {
	var names []string
	for _, p := range s.Processes {
		if !p.Ready {
			names = append(names, p.Name)
		}
	}
	return names
}

func writeStatus(path string, s Status) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the status: %w", err)
	}
	return atomicfile.Write(path, append(data, '\n'), 0o600)
}
