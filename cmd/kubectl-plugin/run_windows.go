package main

import (
	"os"
	"os/signal"
)

// run starts the program, waits for it and ends as it does: Windows has no way to become another program. It returns only when the program can't be run.
func run(target string, args []string) error {
	// Who presses Ctrl+C interrupts every program of the console. The other one decides what follows.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	p, err := os.StartProcess(target, args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	state, err := p.Wait()
	if err != nil {
		return err
	}
	os.Exit(state.ExitCode())
	return nil
}
