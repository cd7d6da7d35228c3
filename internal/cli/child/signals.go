package child

import (
	"os"
	"os/signal"
	"syscall"
)

// ending are the signals that end a process that does nothing about them: of a person at the terminal, of a service manager, of a terminal that goes away.
var ending = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// held is how many signals wait for being looked at; no more of a person come in that time.
const held = 16

// hold keeps signals from ending this process until release is called, whoever else waits for them.
func hold() (signals <-chan os.Signal, release func()) {
	to := make(chan os.Signal, held)
	for _, s := range ending {
		if s == syscall.SIGHUP && signal.Ignored(s) {
			continue // nohup: neither this process nor the command is to end with the terminal
		}
		signal.Notify(to, s)
	}
	return to, func() { signal.Stop(to) }
}
