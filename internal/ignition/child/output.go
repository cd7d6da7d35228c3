package child

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// tail keeps the end of what is written to it.
type tail struct {
	mu    sync.Mutex
	limit int
	kept  []byte
	cut   bool
}

// Write implements io.Writer. It never fails: a program must not notice that nobody listens.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	// Room for a secret across the cut, which would be recognised no more.
	keep := 2 * t.limit
	if len(p) > keep {
		p, t.cut = p[len(p)-keep:], true
	}
	if over := len(t.kept) + len(p) - keep; over > 0 {
		t.kept, t.cut = append(t.kept[:0], t.kept[over:]...), true
	}
	t.kept = append(t.kept, p...)
	return n, nil
}

func (t *tail) text() (text string, limit int, cut bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept), t.limit, t.cut
}

// minSecret is how long a text has to be for it to be taken for a secret: shorter ones are in many words.
const minSecret = 6

// Shapes of secrets that nobody told of: blocks of PEM, also without their end or beginning, long runs of what base64 consists of, and what follows a word
// such as password. Digests of images stay, as do names and paths, which have no capitals.
var (
	pemBlock  = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]+-----.*?(-----END [A-Z ]+-----|$)`)
	longRun   = regexp.MustCompile(`(sha256:)?[A-Za-z0-9+/_=-]{32,}`)
	bearer    = regexp.MustCompile(`(?i)(bearer|basic|password|token|auth)("?\s*[:= ]\s*"?)[^\s",]+`)
	invisible = regexp.MustCompile(`[^\x20-\x7e]+`)
)

const hidden = "[hidden]"

// redact is what may be repeated of an output: its end, on one line, without secrets.
func redact(text string, limit int, cut bool, secrets []string) string {
	// Longer ones first, for a short one may be within.
	for _, s := range slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return cmp.Compare(len(b), len(a)) }) {
		if len(s) >= minSecret {
			text = strings.ReplaceAll(text, s, hidden)
		}
	}
	text = pemBlock.ReplaceAllString(text, hidden)
	if i := strings.Index(text, "-----END "); cut && i >= 0 {
		text = hidden + text[i:] // its beginning was cut off
	}
	text = longRun.ReplaceAllStringFunc(text, func(run string) string {
		if strings.HasPrefix(run, "sha256:") || !mixed(run) {
			return run
		}
		return hidden
	})
	text = bearer.ReplaceAllString(text, "$1$2"+hidden)
	text = strings.TrimSpace(invisible.ReplaceAllString(text, " "))
	if len(text) > limit {
		text = "…" + text[len(text)-limit:]
	}
	return text
}

// mixed tells that a run has digits, capitals and other letters, as random bytes in base64 have.
func mixed(run string) bool {
	return strings.ContainsFunc(run, unicode.IsDigit) && strings.ContainsFunc(run, unicode.IsUpper) && strings.ContainsFunc(run, unicode.IsLower)
}
