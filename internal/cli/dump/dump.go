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
// the rest; the error at the end says how much that was.
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
	return nil
}

// dumper writes files below dir and remembers them, and what went wrong.
type dumper struct {
	dir       string
	progress  *progress.Printer
	client    client.Client
	clientset kubernetes.Interface
	kinds     []kind
	problems  []string
	written   []string // paths of files
}

// problem notes something that could not be read. The text may hold what a server said, so it is redacted.
func (d *dumper) problem(format string, args ...any) {
	d.problems = append(d.problems, redact.Text(fmt.Sprintf(format, args...)))
}
