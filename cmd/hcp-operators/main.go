// Command hcp-operators holds all controllers of the product. Which one runs is decided by the name that it was called by,
// else by the first argument:
//
//	/usr/bin/hypershift-operator run …
//	hcp-operators hypershift-operator run …
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/gomemlimit"
	"hcp.internal/platform/internal/kube/companion"
	"hcp.internal/platform/internal/kube/process"
)

func main() {
	gomemlimit.Heed()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once

	if err := run(ctx, os.Args); err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, argv []string) error {
	if about(os.Stdout, roles, argv) {
		return nil
	}
	role, args, err := choose(roles, argv)
	if err != nil {
		return err
	}
	if program := role.program(args); program != "" {
		return execBeside(program, args)
	}
	if err := process.HeedLeaseDuration(os.Getenv(process.EnvLeaseDuration)); err != nil {
		return err
	}
	cmd := role.command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var logs process.Logs
	logs.AddFlags(cmd.PersistentFlags())
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return logs.SetUp() }
	cmd.SetArgs(args)
	return cmd.ExecuteContext(ctx)
}

// choose finds the role by the name of the program, else by the first argument, and returns the arguments behind it.
func choose(roles []role, argv []string) (role, []string, error) {
	if len(argv) == 0 {
		return role{}, nil, errors.New("called without a program name")
	}
	find := func(name string) int {
		return slices.IndexFunc(roles, func(r role) bool { return r.name == name })
	}
	if i := find(filepath.Base(argv[0])); i >= 0 {
		return roles[i], argv[1:], nil
	}
	names := make([]string, len(roles))
	for i := range roles {
		names[i] = roles[i].name
	}
	if len(argv) < 2 {
		return role{}, nil, fmt.Errorf("the first argument must be a role: %s; --help says more", strings.Join(names, ", "))
	}
	if i := find(argv[1]); i >= 0 {
		return roles[i], argv[2:], nil
	}
	return role{}, nil, fmt.Errorf("unknown role %q: must be one of %s; --help says more", argv[1], strings.Join(names, ", "))
}

// execBeside replaces this process by a program that lies beside this one, also outside an image: the small one that holds the helpers, or the one that
// speaks to clouds.
func execBeside(program string, args []string) error {
	path, err := companion.Beside(program)
	if err != nil {
		return err
	}
	if err := syscall.Exec(path, append([]string{program}, args...), os.Environ()); err != nil {
		return fmt.Errorf("starting %s for %q: %w", path, args[0], err)
	}
	return nil // not reached
}
