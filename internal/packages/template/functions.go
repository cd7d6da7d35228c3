package template

import (
	"encoding/base64"
	"fmt"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

// sprigFunctions are those of Sprig that templates may use: nothing that depends on time, randomness, the machine or the network, so that
// rendering twice gives the same.
const sprigFunctions = `
abbrev abbrevboth trunc trim upper lower title untitle substr repeat trimAll trimSuffix trimPrefix nospace initials swapcase snakecase camelcase
kebabcase wrap wrapWith contains hasPrefix hasSuffix quote squote cat indent nindent replace plural sha1sum sha256sum adler32sum toString hello
atoi int64 int float64 seq toDecimal split splitList splitn toStrings until untilStep
add1 add sub div mod mul add1f addf subf divf mulf biggest max min maxf minf ceil floor round join sortAlpha
default empty coalesce all any compact mustCompact fromJson toJson toPrettyJson toRawJson mustFromJson mustToJson mustToPrettyJson mustToRawJson
ternary deepCopy mustDeepCopy typeOf typeIs typeIsLike kindOf kindIs deepEqual base dir clean ext isAbs b64enc b64dec b32enc b32dec
tuple list dict get set unset hasKey pluck keys pick omit merge mergeOverwrite mustMerge mustMergeOverwrite values
append push prepend first rest last initial reverse uniq without has slice concat dig chunk mustChunk
mustAppend mustPush mustPrepend mustFirst mustRest mustLast mustInitial mustReverse mustUniq mustWithout mustHas mustSlice
semver semverCompare fail
regexMatch regexFindAll regexFind regexReplaceAll regexReplaceAllLiteral regexSplit regexQuoteMeta
mustRegexMatch mustRegexFindAll mustRegexFind mustRegexReplaceAll mustRegexReplaceAllLiteral mustRegexSplit urlParse urlJoin`

// maxItems bounds lists and texts that functions make from a number.
const maxItems = 1 << 20

// Functions are what every template may call, also those of packages, which have more: include needs the set that it includes from.
func Functions() template.FuncMap {
	all := sprig.TxtFuncMap()
	out := template.FuncMap{}
	for _, name := range strings.Fields(sprigFunctions) {
		if f, ok := all[name]; ok {
			out[name] = f
		}
	}
	until, untilStep := all["until"].(func(int) []int), all["untilStep"].(func(int, int, int) []int)
	out["until"] = func(count int) ([]int, error) {
		if count > maxItems || count < -maxItems {
			return nil, fmt.Errorf("until: more than %d items", maxItems)
		}
		return until(count), nil
	}
	out["untilStep"] = func(start, stop, step int) ([]int, error) {
		if step != 0 && (stop-start)/step > maxItems {
			return nil, fmt.Errorf("untilStep: more than %d items", maxItems)
		}
		return untilStep(start, stop, step), nil
	}
	out["repeat"] = func(count int, text string) (string, error) {
		if count < 0 || count*len(text) > maxItems || count > maxItems {
			return "", fmt.Errorf("repeat: more than %d bytes", maxItems)
		}
		return strings.Repeat(text, count), nil
	}
	pad := func(indent string) func(int, string) (string, error) {
		return func(spaces int, text string) (string, error) {
			if spaces < 0 || spaces > 1000 {
				return "", fmt.Errorf("%s: %d is not between 0 and 1000", indent, spaces)
			}
			return all[indent].(func(int, string) string)(spaces, text), nil
		}
	}
	out["indent"], out["nindent"] = pad("indent"), pad("nindent")
	out["seq"] = boundedSeq(all["seq"].(func(...int) string))
	out["toYAML"], out["fromYAML"], out["b64decMap"] = toYAML, fromYAML, b64decMap
	return out
}

func boundedSeq(seq func(...int) string) func(...int) (string, error) {
	return func(params ...int) (string, error) {
		for _, p := range params {
			if p > maxItems || p < -maxItems {
				return "", fmt.Errorf("seq: more than %d items", maxItems)
			}
		}
		return seq(params...), nil
	}
}

func toYAML(v any) (string, error) {
	out, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(out), "\n"), err
}

func fromYAML(text string) (any, error) {
	var out any
	err := yaml.Unmarshal([]byte(text), &out)
	return out, err
}

func b64decMap(in map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(in))
	for key, value := range in {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("b64decMap: value of %s is no text", key)
		}
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("b64decMap: value of %s: %w", key, err)
		}
		out[key] = string(decoded)
	}
	return out, nil
}
