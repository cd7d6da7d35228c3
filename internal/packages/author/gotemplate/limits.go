package gotemplate

import (
	"errors"
	"fmt"
	"time"
)

// Bounds of one rendering. Whoever writes a template is not trusted: within them, whatever a template does ends with text or an error, in a
// few seconds and a few hundred MiB. What Go can't recover from, a stack that overflows or memory that runs out, has to be impossible.
const (
	// maxTemplate is the size of the text of one template. The largest object that an API server takes is 1.5 MiB.
	maxTemplate = 2 << 20
	// maxOutput is what one template may give, and maxSetOutput what all templates of a set may give together.
	maxOutput    = 4 << 20
	maxSetOutput = 16 << 20
	// maxTime is how long rendering one object may take. A hostile template uses all of it, a real one milliseconds.
	maxTime = 2 * time.Second
	// maxInclude is how deep include may go; the message is part of the interface.
	maxInclude = 1000
	// maxBlocks is how deep blocks and parentheses may nest in a template, and maxNested how deep those of all templates that are being
	// included at a time. Each level is about a KiB of stack, of which there is one GiB.
	maxBlocks = 100
	maxNested = 10000
	// maxValue is the size of one value in bytes, with everything below it, once for each way to it.
	maxValue = 4 << 20
	// maxDepth is how deep values may nest.
	maxDepth = 100
	// maxProduced is the size of all texts that functions return in one rendering, maxContainers that of all lists and maps.
	maxProduced   = 64 << 20
	maxContainers = 128 << 20
	// maxTransient is what a function may need beside its result.
	maxTransient = 32 << 20
	// maxWork is how many values a function may compare; each takes some 10 ns.
	maxWork = 100 << 20
	// maxWidth is how wide printf may make one value.
	maxWidth = 1000
	// maxItems bounds lists and texts that functions make from a number.
	maxItems = 1 << 18
	// maxTokens is how many values a text may have that is read as YAML or JSON. Each takes a hundred times its size.
	maxTokens = 1 << 18
	// maxOperands is how many numbers decimal arithmetic takes at once; digits add up.
	maxOperands = 256
	// maxPattern is the length of a regular expression, and maxSearch the number of steps that a search with it may need.
	maxPattern = 1 << 10
	maxSearch  = 16 << 20
	// maxVersion is the length of a version or of a constraint of versions.
	maxVersion = 1 << 10
	// maxMessage is the length of an error. Errors of nested templates repeat those within.
	maxMessage = 8 << 10
)

var (
	errTemplate  = fmt.Errorf("template larger than %d MiB", maxTemplate>>20)
	errOutput    = fmt.Errorf("template gives more than %d MiB", maxOutput>>20)
	errSetOutput = fmt.Errorf("templates give more than %d MiB", maxSetOutput>>20)
	// ErrTime is why a rendering was given up. Another time it may end in time.
	ErrTime       = fmt.Errorf("template takes longer than %.0f s", maxTime.Seconds())
	errDepth      = errors.New("exceeded max include recursion depth")
	errBlocks     = fmt.Errorf("blocks or parentheses nested deeper than %d levels", maxBlocks)
	errValue      = fmt.Errorf("value larger than %d MiB", maxValue>>20)
	errNested     = fmt.Errorf("value nested deeper than %d levels", maxDepth)
	errProduced   = fmt.Errorf("templates make texts of more than %d MiB together", maxProduced>>20)
	errContainers = fmt.Errorf("templates make lists and maps of more than %d MiB together", maxContainers>>20)
	errWidth      = fmt.Errorf("printf: a width or precision above %d", maxWidth)
	errGrowth     = fmt.Errorf("result larger than %d MiB", maxValue>>20)
	errWork       = errors.New("too many values to compare")
	errTokens     = fmt.Errorf("text with more than %d values", maxTokens)
	errOperands   = fmt.Errorf("more than %d numbers", maxOperands)
	errPattern    = fmt.Errorf("regular expression longer than %d bytes", maxPattern)
	errSearch     = errors.New("regular expression too large for a text of this length")
	errVersion    = fmt.Errorf("version longer than %d bytes", maxVersion)
	errPanic      = errors.New("template can't be rendered")
)

// known are errors that each level of nested templates would repeat until the reason is cut off.
var known = []error{errDepth, errOutput, errSetOutput, ErrTime, errBlocks}

// Short returns err with a message of bounded length: its beginning, which says where, and its end, which says why.
func Short(err error) error {
	if err == nil {
		return nil
	}
	for _, k := range known {
		if errors.Is(err, k) {
			return k
		}
	}
	text := err.Error()
	if len(text) <= maxMessage {
		return err
	}
	const head, tail = maxMessage / 4, maxMessage / 2
	return errors.New(text[:head] + " … " + text[len(text)-tail:])
}
