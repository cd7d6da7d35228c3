package capi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"hcp.internal/platform/internal/capigroup/translate"
)

// verdict is how two answers to the same request compare.
type verdict struct {
	// names is how many names of groups differ; everything else is equal byte by byte.
	names int
	// check and at say what is wrong, and where; check is empty if nothing is. Contents are never part of it.
	check, at string
}

func wrong(check, at string, args ...any) verdict {
	return verdict{check: check, at: fmt.Sprintf(at, args...)}
}

const (
	standardEnd = "x-k8s.io"
	privateEnd  = "hypershift.openshift.io"
	stem        = "cluster."
)

// ends are the pairs of texts that may differ, each after what both sides have in common before it.
var ends = []struct{ after, direct, proxied string }{
	{stem, privateEnd, standardEnd},
	{stem, standardEnd, privateEnd},
	{`"`, "hypershift-capi", "cluster-api"},
}

// compareBytes walks through both answers at once. They may differ in nothing but the ends of groups' names. It knows no rules of the
// translation, so that an error in those can't hide here.
func compareBytes(direct, proxied []byte) verdict {
	v := verdict{}
	i, j := 0, 0
next:
	for i < len(direct) && j < len(proxied) {
		if direct[i] == proxied[j] {
			i++
			j++
			continue
		}
		for _, e := range ends {
			// The common beginning of the two ends, if they have one, is behind us already.
			if bytes.HasPrefix(direct[i:], []byte(e.direct)) && bytes.HasPrefix(proxied[j:], []byte(e.proxied)) && bytes.HasSuffix(direct[:i], []byte(e.after)) {
				i, j, v.names = i+len(e.direct), j+len(e.proxied), v.names+1
				continue next
			}
		}
		// Short names: "hma" for "ma".
		if direct[i] == 'h' && i > 0 && direct[i-1] == '"' && translate.ShortName(word(proxied[j:])) == word(direct[i:]) {
			i, v.names = i+1, v.names+1
			continue
		}
		return wrong("bytes", "byte %d of the direct answer, %d of the proxied one", i, j)
	}
	if i != len(direct) || j != len(proxied) {
		return wrong("length", "%d and %d bytes are left after %d and %d", len(direct)-i, len(proxied)-j, i, j)
	}
	return v
}

func word(s []byte) string {
	end := bytes.IndexByte(s, '"')
	if end < 0 || end > 63 {
		return ""
	}
	return string(s[:end])
}

// never are fields whose contents are never translated, whatever they look like.
var never = map[string]bool{"labels": true, "annotations": true, "finalizers": true, "data": true, "stringData": true, "binaryData": true, "fieldsV1": true, "matchLabels": true}

// compareValues looks for what compareBytes can't see: a name that was translated where it must not be, or was left where it must be.
func compareValues(direct, proxied []byte, mapped bool) verdict {
	var d, p any
	if json.Unmarshal(direct, &d) != nil || json.Unmarshal(proxied, &p) != nil {
		return verdict{} // texts and streams
	}
	return values(d, p, "", mapped)
}

func values(d, p any, at string, mapped bool) verdict {
	switch d := d.(type) {
	case map[string]any:
		other, _ := p.(map[string]any)
		for key, value := range d {
			here := at + "." + key
			counterpart, ok := other[key]
			if !ok {
				continue // a key that is a name; the bytes have been compared
			}
			if never[key] && !strings.Contains(at, "openAPIV3Schema") {
				if !quotas(here) && !reflect.DeepEqual(value, counterpart) {
					return wrong("translated in the wrong place", "%s", here)
				}
				continue
			}
			if s, isText := counterpart.(string); isText && mapped && (key == "apiVersion" || key == "apiGroup") && private(s) && !opaque(here) {
				return wrong("not translated", "%s", here)
			}
			if v := values(value, counterpart, here, mapped); v.check != "" {
				return v
			}
		}
	case []any:
		other, _ := p.([]any)
		for i := range min(len(d), len(other)) {
			if v := values(d[i], other[i], fmt.Sprintf("%s[%d]", at, i), mapped); v.check != "" {
				return v
			}
		}
	}
	return verdict{}
}

// quotas have groups in keys, and so in their managed fields.
func quotas(at string) bool { return strings.Contains(at, "managedFields") }

// opaque is where users put whatever they like.
func opaque(at string) bool {
	for _, name := range []string{".variables", ".value", ".requestHook", ".schema"} {
		if strings.Contains(at, name) {
			return true
		}
	}
	return false
}

func private(s string) bool {
	group, _, _ := strings.Cut(s, "/")
	return translate.IsPrivate(group)
}

// compare is all checks of an answer with contents of one type. back gives the direct answer again from the proxied one.
func compare(direct, proxied []byte, mapped bool, back func([]byte) ([]byte, error)) verdict {
	v := compareBytes(direct, proxied)
	if v.check != "" {
		return v
	}
	if again, err := back(proxied); err != nil || !bytes.Equal(again, direct) {
		return wrong("way back", "translating the proxied answer does not give the direct one")
	}
	if deeper := compareValues(direct, proxied, mapped); deeper.check != "" {
		return deeper
	}
	return v
}
