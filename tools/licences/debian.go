package main

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
)

// deb is the type of Debian's packages.
const deb = "deb"

// copyrights is where images have the terms of Debian's packages, which have no identifiers that could be relied on.
const copyrights = "in images at /usr/share/doc/%s/copyright"

// readDebian reads a file with the name of an archive of Debian on each line, as "util-linux_2.38.1-5+deb12u3_arm64.deb", and returns the packages once each.
func readDebian(file string) ([]Module, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("-debian: %w", err)
	}
	names := strings.Fields(string(raw))
	slices.Sort(names)
	var modules []Module
	for _, name := range slices.Compact(names) {
		// apt writes the colon of an epoch in the form of addresses.
		plain, err := url.PathUnescape(strings.TrimSuffix(name, ".deb"))
		parts := strings.Split(plain, "_")
		if err != nil || len(parts) != 3 || !strings.HasSuffix(name, ".deb") {
			return nil, fmt.Errorf("-debian: %s: %q is no archive's name, as NAME_VERSION_ARCHITECTURE.deb", file, name)
		}
		modules = append(modules, Module{Path: parts[0], Version: parts[1], Arch: parts[2], Type: deb})
	}
	return modules, nil
}
