package translate

import "bytes"

const (
	// Standard is the group that stock programs know. Groups that end in "."+Standard belong to it.
	Standard = "cluster.x-k8s.io"
	// Private is where the same kinds are stored.
	Private = "cluster.hypershift.openshift.io"

	// maxGroup is the longest name of a group, a DNS subdomain. A group is renamed only if its new name fits, too, so that the way
	// back exists.
	maxGroup = 253
)

// Group is σ: it swaps Standard and Private, alone or after a dot, and returns every other name as it is.
func Group(g string) string {
	if keep, repl := swap(g); repl != "" {
		return g[:keep] + repl
	}
	return g
}

// InDomain tells whether σ changes a group.
func InDomain(g string) bool { _, repl := swap(g); return repl != "" }

// IsPrivate tells whether a group is Private or ends in it.
func IsPrivate(g string) bool { _, repl := swap(g); return repl == Standard }

// GroupVersion is σ for "group/version". What isn't of that form is returned as it is.
func GroupVersion(gv string) string { return formGV.text(gv) }

// CRDName is σ for "plural.group", the name of a CustomResourceDefinition.
func CRDName(name string) string { return formCRD.text(name) }

// swap returns how many bytes of g stay and what follows them in the other view; repl is empty if σ leaves g alone.
func swap[T string | []byte](g T) (keep int, repl string) {
	if n := prefix(g, Standard); n >= 0 && n+len(Private) <= maxGroup {
		return n, Private
	}
	if n := prefix(g, Private); n >= 0 && len(g) <= maxGroup {
		return n, Standard
	}
	return 0, ""
}

// prefix is the length of what is before suffix in g, with its dot, or -1 if g isn't suffix or labels in front of it.
func prefix[T string | []byte](g T, suffix string) int {
	n := len(g) - len(suffix)
	if n < 0 || string(g[n:]) != suffix {
		return -1
	}
	if n > 0 && g[n-1] != '.' {
		return -1
	}
	for i := range n {
		if c := g[i]; !isLabel(c) && (c != '.' || i == 0 || g[i-1] == '.') {
			return -1
		}
	}
	return n
}

func isLabel(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' }

// isVersion matches v1, v2beta3 and the like.
func isVersion[T string | []byte](v T) bool {
	n := len(v)
	if n < 2 || v[0] != 'v' {
		return false
	}
	i := 1
	for i < n && isDigit(v[i]) {
		i++
	}
	if i == 1 {
		return false
	}
	if i == n {
		return true
	}
	rest := string(v[i:min(n, i+5)])
	switch {
	case rest == "alpha":
		i += 5
	case len(rest) >= 4 && rest[:4] == "beta":
		i += 4
	default:
		return false
	}
	if i == n {
		return false
	}
	for ; i < n; i++ {
		if !isDigit(v[i]) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// form says how a string holds a group.
type form uint8

const (
	formNone        form = iota
	formGV               // group/version
	formGroup            // group
	formCRD              // plural.group
	formAPIService       // version.group
	formURL              // /apis/group/…
	formCount            // count/plural.group, of a ResourceQuota
	formText             // a sentence, see appendText
	formNamedText        // a sentence about objects that are named by a group
	formShort            // a short name or category of a mirrored kind
	formDefinition       // a definition's name in an OpenAPI document
	formReference        // a reference to one
	formOperation        // an operation's identifier, or a tag
	formOpenAPIPath      // apis/group/version, a key of /openapi/v3
	formOpenAPIURL       // /openapi/v3/apis/group/version?hash=…
	formKind             // not renamed; says what kind of object this is
)

// isText tells that a string is a sentence that may name groups anywhere.
func (f form) isText() bool { return f == formText || f == formNamedText }

// text applies the form to a string.
func (f form) text(s string) string {
	out, changed, _ := f.apply(nil, []byte(s))
	if !changed {
		return s
	}
	return string(out)
}

// apply appends what s is in the other view, if that differs. theirs tells that the result names a private group: what
// another owner of Cluster API keeps on the same cluster.
func (f form) apply(dst, s []byte) (out []byte, changed, theirs bool) {
	from, to := 0, len(s)
	switch f {
	case formGroup:
	case formGV:
		to = bytes.IndexByte(s, '/')
		if to < 0 || !isVersion(s[to+1:]) {
			return dst, false, false
		}
	case formCRD, formAPIService:
		dot := bytes.IndexByte(s, '.')
		if dot <= 0 || f == formAPIService && !isVersion(s[:dot]) {
			return dst, false, false
		}
		from = dot + 1
	case formURL, formOpenAPIPath, formOpenAPIURL:
		apis := "/apis/"
		switch f {
		case formOpenAPIPath:
			apis = "apis/"
		case formOpenAPIURL:
			apis = "/openapi/v3/apis/"
		}
		if len(s) < len(apis) || string(s[:len(apis)]) != apis {
			return dst, false, false
		}
		from = len(apis)
		if n := bytes.IndexByte(s[from:], '/'); n >= 0 {
			to = from + n
		}
	case formCount:
		count := "count/"
		if bytes.HasPrefix(s, []byte("f:")) { // as managed fields name it
			count = "f:count/"
		}
		dot := bytes.IndexByte(s, '.')
		if len(s) < len(count) || string(s[:len(count)]) != count || dot <= len(count) {
			return dst, false, false
		}
		from = dot + 1
	case formText, formNamedText:
		return appendText(dst, s, f == formNamedText)
	case formShort:
		return appendShort(dst, s)
	case formDefinition, formReference:
		return appendDefinition(dst, s, f == formReference)
	case formOperation:
		return appendOperation(dst, s)
	default:
		return dst, false, false
	}
	keep, repl := swap(s[from:to])
	if repl == "" {
		return dst, false, false
	}
	dst = append(dst, s[:from+keep]...)
	dst = append(dst, repl...)
	return append(dst, s[to:]...), true, repl == Private
}

var needles = [][]byte{[]byte(Standard), []byte(Private)}

// Needles tells whether a body spells out a group that σ changes, anywhere. API servers don't escape the characters of groups.
func Needles(body []byte) bool {
	for _, needle := range needles {
		if bytes.Contains(body, needle) {
			return true
		}
	}
	return false
}

// MayName tells whether a body of a client could name a group that σ changes: it spells one out, or has escapes, in which one could hide.
// YAML can hide one in binary values and in UTF-16, too.
func MayName(body []byte) bool { return Needles(body) || bytes.ContainsAny(body, "\\!\x00") }
