package version

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// Verdict says whether a client and a server may work together.
type Verdict string

// Verdicts.
const (
	// Same build.
	Same Verdict = "Same"
	// Supported are builds that are at most one minor version apart.
	Supported Verdict = "Supported"
	// Unsupported are builds that are further apart.
	Unsupported Verdict = "Unsupported"
	// Undetermined is when a side doesn't say what it is.
	Undetermined Verdict = "Undetermined"
)

// Skew is how far a client and a server are apart.
type Skew struct {
	Verdict Verdict `json:"verdict"`
	Message string  `json:"message"` // says what to do when that is needed
}

// maxMinorSkew is how many minor versions a client and a server may be apart, either way.
const maxMinorSkew = 1

// Compare judges a client and the server that it found. A server of before versions were published has none.
func Compare(client, server Build) Skew {
	if client.Commit == server.Commit && client.Version == server.Version && client.Commit != Unknown {
		return Skew{Same, "client and server are the same build"}
	}
	if server.Version == "" {
		return Skew{Undetermined, fmt.Sprintf("the server says no version, only commit %s: it is older than v0.1.0; run `hypershift install` of this client to upgrade it", server.Commit)}
	}
	c, errClient := version.ParseSemantic(client.Version)
	s, errServer := version.ParseSemantic(server.Version)
	switch {
	case errClient != nil:
		return Skew{Undetermined, fmt.Sprintf("the client's version %q is no semantic version", client.Version)}
	case errServer != nil:
		return Skew{Undetermined, fmt.Sprintf("the server's version %q is no semantic version", server.Version)}
	case c.Major() == s.Major() && distance(c.Minor(), s.Minor()) <= maxMinorSkew:
		return Skew{Supported, between(c, s)}
	case c.LessThan(s):
		return Skew{Unsupported, fmt.Sprintf("the client is v%s and the server v%s, more than one minor version apart: use a client of v%d.%d", c, s, s.Major(), s.Minor())}
	}
	return Skew{Unsupported, fmt.Sprintf("the client is v%s and the server v%s, more than one minor version apart: upgrade the server, one minor version after the other, or use a client of v%d.%d",
		c, s, s.Major(), s.Minor())}
}

// between says what two versions are apart that may work together.
func between(c, s *version.Version) string {
	switch {
	case c.Minor() != s.Minor():
		return "client and server are one minor version apart, which is supported"
	case c.String() == s.String():
		return "client and server have the same version, of different commits"
	}
	return "client and server have the same minor version"
}

func distance(a, b uint) uint {
	if a > b {
		return a - b
	}
	return b - a
}
