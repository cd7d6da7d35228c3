package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("licences", flag.ContinueOnError)
	root := flags.String("root", "..", "folder of the repository")
	format := flags.String("format", "list", "list, text (all licences and notices) or spdx (JSON)")
	file := flags.String("out", "", "file to write instead of standard output")
	name := flags.String("name", "hypershift", "name in an SPDX document")
	version := flags.String("version", "0.0.0", "version in an SPDX document")
	debian := flags.String("debian", "", "file with names of Debian's archives that images hold, a line for each, for an SPDX document")
	if err := flags.Parse(args); err != nil {
		return err
	}
	wanted, err := programs(flags.Args())
	if err != nil {
		return err
	}
	created, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	modules, err := Collect(ctx, *root, wanted...)
	if err != nil {
		return err
	}
	if *debian != "" && *format == "spdx" {
		packages, err := readDebian(*debian)
		if err != nil {
			return err
		}
		modules = append(modules, packages...)
	}
	write := func(w io.Writer) error {
		switch *format {
		case "list":
			return writeList(w, modules)
		case "text":
			return writeText(w, modules)
		case "spdx":
			return writeSPDX(w, *name, *version, created, modules)
		}
		return fmt.Errorf("-format %q: use list, text or spdx", *format)
	}
	if *file == "" {
		return write(out)
	}
	if err := os.MkdirAll(filepath.Dir(*file), 0o755); err != nil {
		return err
	}
	f, err := os.Create(*file)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// sourceDate is the time that documents bear: seconds since 1970, as SOURCE_DATE_EPOCH has them. Empty means 1970.
func sourceDate(value string) (time.Time, error) {
	if value == "" {
		return time.Unix(0, 0), nil
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, want seconds since 1970", value)
	}
	return time.Unix(seconds, 0), nil
}
