package support

import (
	"slices"
	"strings"
)

// Program is one of ours, with its commands.
type Program struct {
	Name     string
	Commands []Command
}

// Command is what is known about the flags of a command. They hold for the commands below it, too. Lists are separated by spaces.
type Command struct {
	// Command is the whole name, as in "hypershift create cluster".
	Command string
	Heeded  string
	// Refused flags parse, and the command fails with a reason and a remedy.
	Refused string
	// NotHeeded flags are taken and told: by a note of the command, by their help, or, where they become a field of a HostedCluster that nobody
	// heeds, by condition AllFieldsHeeded.
	NotHeeded string
}

// Flag is the verdict on a flag of a command, empty when the table has none.
func Flag(command, flag string) Verdict {
	for _, p := range Programs {
		for name := command; name != ""; name = parent(name) {
			for _, c := range p.Commands {
				switch {
				case c.Command != name:
				case slices.Contains(strings.Fields(c.Heeded), flag):
					return Heeded
				case slices.Contains(strings.Fields(c.Refused), flag):
					return Refused
				case slices.Contains(strings.Fields(c.NotHeeded), flag):
					return NotHeeded
				}
			}
		}
	}
	return ""
}

func parent(command string) string {
	i := strings.LastIndex(command, " ")
	if i < 0 {
		return ""
	}
	return command[:i]
}
