// Command benchcompare judges runs of benchmarks of two versions: it prints a table, and fails when a figure got worse beyond noise.
//
//	benchcompare [-worse 10] BASE.txt HEAD.txt
//
// Both files have what `go test -bench` printed, of several runs one after the other. `make bench-compare BASE=ref` makes them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "benchcompare:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("benchcompare", flag.ContinueOnError)
	percent := flags.Float64("worse", 10, "by how many percent the median of a figure may get worse")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return errors.New("name two files: what the benchmarks of the base printed, and of the head")
	}
	var sides [2]runs
	for i := range sides {
		side, err := readFile(flags.Arg(i))
		if err != nil {
			return err
		}
		sides[i] = side
	}
	rows := compare(sides[0], sides[1], *percent/100)
	if err := write(out, rows); err != nil {
		return err
	}
	return gate(rows, *percent/100)
}

func readFile(path string) (runs, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	side := runs{}
	if err := side.read(f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return side, nil
}
