package process

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Logs are the log flags of every operator.
type Logs struct {
	// Level is 0 for what changed, 1 for decisions, too, more for debugging.
	Level int
	// Format is text or json.
	Format string
}

// AddFlags adds the flags with their defaults.
func (l *Logs) AddFlags(fs *pflag.FlagSet) {
	fs.IntVar(&l.Level, "log-level", 0, "Log level: 0 what changed, 1 decisions too, more for debugging")
	fs.StringVar(&l.Format, "log-format", "text", "Log format: text or json")
}

// SetUp sends the logs of controllers and of client libraries to standard error through slog.
func (l *Logs) SetUp() error {
	// logr's V(n) is slog's level -n.
	options := &slog.HandlerOptions{Level: slog.Level(-l.Level)}
	var handler slog.Handler
	switch l.Format {
	case "text":
		handler = slog.NewTextHandler(os.Stderr, options)
	case "json":
		handler = slog.NewJSONHandler(os.Stderr, options)
	default:
		return fmt.Errorf("--log-format %q: must be text or json", l.Format)
	}
	logger := logr.FromSlogHandler(handler)
	ctrllog.SetLogger(logger)
	klog.SetLogger(logger)
	slog.SetDefault(slog.New(handler))
	return nil
}
