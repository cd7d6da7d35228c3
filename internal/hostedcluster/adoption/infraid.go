package adoption

import (
	"crypto/rand"
	"math/big"
	"strings"
)

const (
	maxInfraID      = 27 // cloud names are made of it
	maxInfraIDName  = maxInfraID - 1 - InfraIDSuffix
	InfraIDSuffix   = 5
	infraIDAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
)

// InfraIDFor makes "{name, at most 21 characters of [A-Za-z0-9-]}-{suffix}".
func InfraIDFor(name, suffix string) string {
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

// RandomID gives n characters of infraIDAlphabet.
func RandomID(n int) string {
	id := make([]byte, n)
	for i := range id {
		k, err := rand.Int(rand.Reader, big.NewInt(int64(len(infraIDAlphabet))))
		if err != nil {
			panic(err) // the kernel has no randomness: nothing can go on
		}
		id[i] = infraIDAlphabet[k.Int64()]
	}
	return string(id)
}
