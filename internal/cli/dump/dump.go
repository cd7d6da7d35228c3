// Package dump collects what is needed to find out why a hosted cluster doesn't work, without anything secret.
//
// Everything that is written goes through kube/redact. Secrets are listed with their keys and sizes only.
package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/kube/redact"
)

// archiveName is the archive beside the files.
const archiveName = "hypershift-dump.tar.gz"

// Options says what to dump.
type Options struct {
	Connect     connect.Flags
	Name        string
	Namespace   string
	ArtifactDir string
	Guest       bool // also objects of the hosted cluster
	Archive     bool
	// AgentNamespace is where the agents of a cluster of platform Agent are; empty: nowhere.
	AgentNamespace string
	// OperatorNamespace is where the operator of the management cluster runs.
	OperatorNamespace string
	Timeout           time.Duration

	Clock clock.WithTicker // nil: the real one
}

// NewOptions returns the defaults.
func NewOptions() Options {
	return Options{
		Namespace:         connect.DefaultNamespace,
		OperatorNamespace: install.DefaultNamespace,
		Archive:           true,
		Timeout:           10 * time.Minute,
	}
}

// Cluster writes the dump of a hosted cluster to o.ArtifactDir. What can't be read is noted in the dump and doesn't stop
// the rest. The error at the end says if there is no such HostedCluster, or if the time was over before all was read; the dump is written all the same.
func Cluster(ctx context.Context, o Options, out io.Writer) error {
	if o.Name == "" {
		return errors.New("--name is required")
	}
	if o.ArtifactDir == "" {
		return errors.New("--artifact-dir is required: name a directory for the files")
	}
	config, err := o.Connect.RESTConfig()
	if err != nil {
		return err
	}
	ctx, cancel := connect.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if err := os.MkdirAll(o.ArtifactDir, 0o700); err != nil {
		return fmt.Errorf("--artifact-dir: %w", err)
	}
	p := progress.New(out, o.Clock)
	d := &dumper{dir: o.ArtifactDir, progress: p}
	if err := d.connect(config); err != nil {
		return err
	}
	if err := d.management(ctx, o); err != nil {
		return err
	}
	if o.Guest {
		d.guest(ctx, o)
	}
	ended := ctx.Err() // of reading: what was read is written, however long that takes
	if err := d.writeProblems(); err != nil {
		return err
	}
	if o.Archive {
		archive := filepath.Join(o.ArtifactDir, archiveName)
		if err := writeArchive(o.ArtifactDir, archive, d.written); err != nil {
			return err
		}
		p.Printf("wrote %s", archive)
	}
	p.Printf("wrote %d files to %s; %d things could not be read, see %s", len(d.written), o.ArtifactDir, len(d.problems), problemsFile)
	return d.result(o, ended)
}

// result is the error of a dump that was written and isn't that of a hosted cluster, or not all of it. ended is why reading ended early, if it did.
func (d *dumper) result(o Options, ended error) error {
	switch {
	case d.missing:
		return exit.With(exit.NotFound, fmt.Errorf("HostedCluster %s/%s doesn't exist: the dump has what else is there of that name; check --name and --namespace", o.Namespace, o.Name))
	case errors.Is(ended, context.DeadlineExceeded):
		return exit.With(exit.TimedOut, fmt.Errorf("the dump isn't complete, see %s: not all could be read within --timeout %s: %w", problemsFile, o.Timeout, ended))
	case ended != nil:
		return fmt.Errorf("the dump isn't complete, see %s: %w", problemsFile, ended)
	}
	return nil
}

// dumper writes files below dir and remembers them, and what went wrong.
type dumper struct {
	dir       string
	progress  *progress.Printer
	client    client.Client
	clientset kubernetes.Interface
	kinds     []kind
	missing   bool // there is no such HostedCluster
	problems  []string
	written   []string // paths of files
}

// problem notes something that could not be read. The text may hold what a server said, so it is redacted.
func (d *dumper) problem(format string, args ...any) {
	d.problems = append(d.problems, redact.Text(fmt.Sprintf(format, args...)))
}
