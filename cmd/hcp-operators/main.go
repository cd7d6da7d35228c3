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
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"hcp.internal/platform/internal/gomemlimit"
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
	if helper := role.helper(args); helper != "" {
		return execSidecar(args)
	}
	cmd := role.command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var logs logOptions
	logs.addFlags(cmd)
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return logs.setUp() }
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

// execSidecar replaces this process by the small binary that holds the helpers. It lies beside this one, also outside an image.
func execSidecar(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding hcp-sidecar: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(self); err == nil {
		self = resolved
	}
	path := filepath.Join(filepath.Dir(self), "hcp-sidecar")
	if err := syscall.Exec(path, append([]string{"hcp-sidecar"}, args...), os.Environ()); err != nil {
		return fmt.Errorf("starting %s for %q: %w", path, args[0], err)
	}
	return nil // not reached
}

// logOptions are the log flags of every role.
type logOptions struct {
	level  int
	format string
}

func (o *logOptions) addFlags(cmd *cobra.Command) {
	cmd.PersistentFlags().IntVar(&o.level, "log-level", 0, "Log level: 0 what changed, 1 decisions too, more for debugging")
	cmd.PersistentFlags().StringVar(&o.format, "log-format", "text", "Log format: text or json")
}

// setUp sends the logs of controllers and of client libraries to standard error through slog.
func (o *logOptions) setUp() error {
	// logr's V(n) is slog's level -n.
	options := &slog.HandlerOptions{Level: slog.Level(-o.level)}
	var handler slog.Handler
	switch o.format {
	case "text":
		handler = slog.NewTextHandler(os.Stderr, options)
	case "json":
		handler = slog.NewJSONHandler(os.Stderr, options)
	default:
		return fmt.Errorf("--log-format %q: must be text or json", o.format)
	}
	logger := logr.FromSlogHandler(handler)
	ctrllog.SetLogger(logger)
	klog.SetLogger(logger)
	slog.SetDefault(slog.New(handler))
	return nil
}
