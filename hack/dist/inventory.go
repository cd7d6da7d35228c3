package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// inventory is the name of the SBOM.
const inventory = "sbom.spdx.json"

// readLicences asks the tool, which has a module of its own, once for each set of programs.
func (d *distribution) readLicences(ctx context.Context, programs ...string) ([]byte, error) {
	key := strings.Join(programs, " ")
	if text, ok := d.texts[key]; ok {
		return text, nil
	}
	text, err := d.runLicences(ctx, append([]string{"-format", "text"}, programs...)...)
	if err != nil {
		return nil, err
	}
	if d.texts == nil {
		d.texts = map[string][]byte{}
	}
	d.texts[key] = text
	return text, nil
}

func (d *distribution) runLicences(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", "-trimpath", "./licences"}, args...)...)
	cmd.Dir = filepath.Join(d.root, "tools")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", d.created.Unix()))
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("collecting licences: %w: %s", err, exit.Stderr)
	}
	return out, err
}

// makeSBOM lists what is linked and, where images are made, Debian's packages in them.
func (d *distribution) makeSBOM(ctx context.Context, say func(string, ...any)) error {
	args := []string{"-format", "spdx", "-name", "hypershift", "-version", d.version}
	if _, err := os.Stat(filepath.Join(d.out, "images", "index.json")); err == nil {
		archives, err := d.archivesOfDebian(ctx, say)
		if err != nil {
			return err
		}
		defer func() { _ = os.Remove(archives) }() // is read by then
		args = append(args, "-debian", archives)
	}
	out, err := d.runLicences(ctx, args...)
	if err != nil {
		return err
	}
	return d.write(inventory, out)
}

// archivesOfDebian writes a file with the names of Debian's archives that images are made of. It has to be removed.
func (d *distribution) archivesOfDebian(ctx context.Context, say func(string, ...any)) (string, error) {
	var names strings.Builder
	for _, arch := range d.architectures {
		sets, err := d.debian(ctx, say, arch)
		if err != nil {
			return "", err
		}
		for _, packages := range sets {
			for _, p := range packages {
				names.WriteString(p.File + "\n")
			}
		}
	}
	file, err := os.CreateTemp("", "archives-")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(names.String())
	if err = errors.Join(err, file.Close()); err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), err
}
