//go:build !windows

package main

import (
	"os"
	"syscall"
)

// run becomes the program, and returns only when that can't be.
func run(target string, args []string) error { return syscall.Exec(target, args, os.Environ()) }
