package hostedcluster

import "strings"

const (
	maxInfraID      = 27 // cloud names are made of it
	maxInfraIDName  = maxInfraID - 1 - infraIDSuffix
	infraIDSuffix   = 5
	infraIDAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
)

// infraIDFor makes "{name, at most 21 characters of [A-Za-z0-9-]}-{suffix}".
func infraIDFor(name, suffix string) string {
	var b strings.Builder
	for _, c := range name {
		alphanumeric := (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
		if alphanumeric || (c == '-' && !strings.HasSuffix(b.String(), "-")) {
			b.WriteRune(c)
		}
	}
	base := b.String()
	if len(base) > maxInfraIDName {
		base = base[:maxInfraIDName]
	}
	return strings.TrimRight(base, "-") + "-" + suffix
}
