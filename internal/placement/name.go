package placement

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ObjectName is the name of the object that stands for what a text names, and is the text itself where that can be one, and the value of a label. Pairs and
// sizes are values of labels, which may have capital letters and underscores: these are replaced, and a hash of the text keeps two of them apart.
func ObjectName(text string) string {
	if len(text) <= validation.LabelValueMaxLength && len(validation.IsDNS1123Subdomain(text)) == 0 {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	hash := "-" + hex.EncodeToString(sum[:4])
	plain := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	plain = strings.TrimLeft(plain[:min(len(plain), validation.LabelValueMaxLength-len(hash))], "-")
	return strings.TrimLeft(strings.TrimRight(plain, "-")+hash, "-")
}
