package manifest

import "github.com/bmatcuk/doublestar/v4"

// maxGlob bounds a pattern; matching one takes time that grows with its length.
const maxGlob = 1024

func validGlob(pattern string) bool {
	return pattern != "" && len(pattern) <= maxGlob && doublestar.ValidatePattern(pattern)
}
