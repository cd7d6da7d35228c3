package payload

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// newestIndexMajor and newestIndexMinor are the newest release that there are catalogs for.
	newestIndexMajor, newestIndexMinor = 4, 22
	// indexMinors is how many minors are tried, the one of the release included.
	indexMinors = 4

	redHatRegistry   = "registry.redhat.io"
	redHatRepository = redHatRegistry + "/redhat"
)

// CatalogImages are the images that the catalog of a name, such as redhat-operators, may be had from for a release's version: the best first, then other
// repositories, then older minors. overrides is what annotation olm-catalogs-is-registry-overrides says: source=destination,…
func CatalogImages(name, version, overrides, annotation string) ([]string, error) {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return nil, fmt.Errorf("the release of the hosted cluster has version %q, and catalogs go by major.minor", version)
	}
	if slices.Compare([]int{major, minor}, []int{newestIndexMajor, newestIndexMinor}) > 0 {
		major, minor = newestIndexMajor, newestIndexMinor
	}
	repositories, err := indexRepositories(overrides, annotation)
	if err != nil {
		return nil, err
	}
	var images []string
	for older := 0; older < indexMinors && older <= minor; older++ {
		for _, repository := range repositories {
			images = append(images, fmt.Sprintf("%s/%s-index:v%d.%d", repository, strings.TrimSuffix(name, "s"), major, minor-older))
		}
	}
	return images, nil
}

// indexRepositories are where catalogs may be, given what the user says of registries.
func indexRepositories(overrides, annotation string) ([]string, error) {
	var exact, below []string
	for entry := range strings.SplitSeq(overrides, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		from, to, ok := strings.Cut(entry, "=")
		if to = strings.TrimSuffix(to, "/"); !ok || from == "" || to == "" {
			return nil, fmt.Errorf("annotation %s: %q is no registry and its replacement, as in %s=registry.example.com", annotation, entry, redHatRegistry)
		}
		switch from {
		case redHatRepository:
			exact = append(exact, to)
		case redHatRegistry:
			below = append(below, to+"/redhat", to)
		}
	}
	switch {
	case len(exact) > 0:
		return exact, nil
	case len(below) > 0:
		return below, nil
	}
	return []string{redHatRepository}, nil
}
