package main

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are licences under which what we link may be passed on together with programs under Apache-2.0. MPL-2.0 holds for files: the text
// that goes along says where their sources are.
var allowed = map[string]bool{
	"0BSD": true, "Apache-2.0": true, "BSD-2-Clause": true, "BSD-3-Clause": true, "CC0-1.0": true, "ISC": true, "MIT": true, "MIT-0": true,
	"MPL-2.0": true, "Unlicense": true, "Zlib": true, "BSL-1.0": true, "Unicode-DFS-2016": true, "PSF-2.0": true,
}

// variants are names of licensecheck for texts that say the same as a licence of SPDX.
var variants = map[string]string{
	"Apache-2.0-User": "Apache-2.0", "BSD-2-Clause-FreeBSD": "BSD-2-Clause", "BSD-2-Clause-Views": "BSD-2-Clause", "MIT-NoAd": "MIT",
}

// minCoverage is how much of a licence's file must be a licence that is known, in percent: lists of authors and of parts take room, too.
const minCoverage = 60

// licenceName are the files of a module that must hold a licence; others are passed on as they are.
var licenceName = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)`)

// judge returns the licences of a module, or what is wrong with them.
func judge(m Module) ([]string, error) {
	var ids []string
	var errs []error
	read := 0
	for _, t := range m.Texts {
		if !licenceName.MatchString(path.Base(t.Name)) {
			continue
		}
		coverage := licensecheck.Scan(t.Data)
		var here []string
		for _, match := range coverage.Match {
			id := match.ID
			if v := variants[id]; v != "" {
				id = v
			}
			if !match.IsURL && !slices.Contains(here, id) {
				here = append(here, id)
			}
		}
		switch {
		case len(here) == 0, coverage.Percent < minCoverage:
			errs = append(errs, fmt.Errorf("%s %s: %s is no licence that is known (%.0f %% of it is %s): look at it, and replace the module, or teach tools/licences the text",
				m.Path, m.Version, t.Name, coverage.Percent, strings.Join(here, ", ")))
			continue
		}
		for _, id := range here {
			if !allowed[id] {
				errs = append(errs, fmt.Errorf("%s %s: %s is %s, which programs under Apache-2.0 can't be passed on with: replace the module", m.Path, m.Version, t.Name, id))
			}
		}
		read++
		ids = append(ids, here...)
	}
	if read == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%s %s: no licence is at its root: replace the module", m.Path, m.Version))
	}
	slices.Sort(ids)
	return slices.Compact(ids), errors.Join(errs...)
}
