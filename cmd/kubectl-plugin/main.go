// Command kubectl-plugin is what archives of the command line have under the names by which kubectl looks for plugins: it runs the program hypershift that
// is beside it, under its own name.
//
// A link would do, but neither zips nor krew know links, and copies of a program of 100 MB are no answer. It imports little, because every archive has it
// several times.
package main

import (
	"os"
	"path/filepath"
	"strings"
)

// program is the one that is run.
const program = "hypershift"

// failed is the exit code when there is no program to run, as shells have it.
const failed = 127

func main() {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self) // somebody's link to it leads to the folder that has the program
	}
	if err != nil {
		fail("looking for the folder of this program", err)
	}
	target := beside(self)
	if err := run(target, arguments(os.Args)); err != nil {
		fail("running "+target+", which has to be in the folder of this program", err)
	}
}

// beside is where the program is for a launcher at self.
func beside(self string) string {
	name := program
	if strings.EqualFold(filepath.Ext(self), ".exe") {
		name += ".exe"
	}
	return filepath.Join(filepath.Dir(self), name)
}

// arguments are those of the program: it looks at the name that it is called by.
func arguments(args []string) []string {
	if len(args) == 0 {
		return []string{program}
	}
	return append([]string{filepath.Base(args[0])}, args[1:]...)
}

func fail(doing string, err error) {
	_, _ = os.Stderr.WriteString("Error: " + doing + ": " + err.Error() + "\n") // there is nobody else to tell
	os.Exit(failed)
}
