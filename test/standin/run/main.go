// Package run is what the stand-in of a payload's program does: it checks what it was given as the real one would, answers where the
// real one answers, calls the hosted API with its kubeconfigs, and reports. A failed check ends it with a sentence.
package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"hcp.internal/platform/test/standin/programs"
)

// Variables of the images: tag and version of the payload that the image is of.
const (
	ImageVariable   = "STANDIN_IMAGE"
	VersionVariable = "STANDIN_VERSION"
)

// Report is the line that a program prints when it is ready.
type Report struct {
	Standin string   `json:"standin"`
	Image   string   `json:"image"`
	Version string   `json:"version"`
	Ready   bool     `json:"ready"`
	Checked []string `json:"checked"`
}

// applets are the programs that aren't in the table, by the name they are called by.
var applets = map[string]func(args []string, out io.Writer) error{
	"hyperkube": hyperkubeMain,
	"nslookup":  nslookup,
	"etcdctl":   etcdctl,
	"etcd":      etcdMain,
}

// Main is the whole program; it returns the exit code.
func Main(args []string) int {
	name := filepath.Base(args[0])
	if applet, ok := applets[name]; ok && !(name == "etcd" && len(args) > 1 && args[1] == "grpc-proxy") {
		if err := applet(args[1:], os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			return 1
		}
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := program(ctx, args, os.Stdout); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// program runs one of the table.
func program(ctx context.Context, args []string, out io.Writer) error {
	p, rest, err := programs.Find(os.Getenv(ImageVariable), args)
	if err != nil {
		return err
	}
	values, err := p.Check(rest)
	if err != nil {
		return err
	}
	if err := p.CheckEnv(os.Getenv); err != nil {
		return err
	}
	r := &runner{Program: p, values: values, out: out, root: "/"}
	if err := r.inspect(); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	if p.Once {
		err := r.once()
		if err == nil {
			r.report()
		}
		return err
	}
	if err := r.serve(ctx); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}

func (r *runner) report() {
	line, err := json.Marshal(Report{Standin: r.Name, Image: os.Getenv(ImageVariable), Version: os.Getenv(VersionVariable), Ready: true, Checked: r.checked})
	if err == nil {
		fmt.Fprintf(r.out, "%s\n", line)
	}
}
