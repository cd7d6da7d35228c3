package gotemplate

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"strconv"
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

// functions are what every template may call. Sets add include, which needs the set that it includes from.
func functions(ctx context.Context) template.FuncMap {
	all := sprig.TxtFuncMap()
	out := template.FuncMap{}
	for _, name := range strings.Fields(sprigFunctions) {
		if f, ok := all[name]; ok {
			out[name] = f
		}
	}
	out["until"] = func(count int) ([]int, error) { return steps(0, count, direction(0, count)) }
	out["untilStep"] = func(start, stop, step int) ([]int, error) { return steps(start, stop, step) }
	out["repeat"] = func(count int, text string) (string, error) {
		if count < 0 || count > maxValue || count*len(text) > maxValue {
			return "", fmt.Errorf("more than %d bytes", maxValue)
		}
		return strings.Repeat(text, count), nil
	}
	for _, name := range []string{"indent", "nindent"} {
		pad := all[name].(func(int, string) string)
		out[name] = func(spaces int, text string) (string, error) {
			if spaces < 0 || spaces > 1000 {
				return "", fmt.Errorf("%d is not between 0 and 1000", spaces)
			}
			return pad(spaces, text), nil
		}
	}
	out["seq"] = seq
	out["semver"] = newVersion
	out["toYAML"], out["fromYAML"], out["b64decMap"] = toYAML, fromYAML, b64decMap
	maps.Copy(out, search{ctx}.functions())
	return out
}

func direction(from, to int) int {
	if to < from {
		return -1
	}
	return 1
}

// steps are the numbers from start to stop, which is not one of them. No numbers lead away from stop.
func steps(start, stop, step int) ([]int, error) {
	if step == 0 || start == stop || (stop < start) != (step < 0) {
		return []int{}, nil
	}
	span := uint64(stop) - uint64(start) // it wraps around to the right distance
	size := uint64(step)                 // it is made positive
	if step < 0 {
		span, size = -span, -size
	}
	if span/size >= maxItems {
		return nil, fmt.Errorf("more than %d items", maxItems)
	}
	out := make([]int, 0, span/size+1)
	for i := range (span + size - 1) / size {
		out = append(out, start+int(i)*step) // it is below maxItems
	}
	return out, nil
}

// seq is the shell's: the numbers from first to last, both of them, with blanks between.
func seq(params ...int) (string, error) {
	first, step := 1, 0
	var last int
	switch len(params) {
	case 1:
		last = params[0]
	case 2:
		first, last = params[0], params[1]
	case 3:
		first, step, last = params[0], params[1], params[2]
		if step == 0 {
			return "", nil
		}
	default:
		return "", nil
	}
	towards := direction(first, last)
	if step == 0 {
		step = towards
	}
	const most = math.MaxInt32
	if first > most || first < -most || last > most || last < -most {
		return "", fmt.Errorf("a number above %d", most)
	}
	numbers, err := steps(first, last+towards, step)
	if err != nil {
		return "", err
	}
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, " "), nil
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
			return nil, fmt.Errorf("value of %s is no text", key)
		}
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("value of %s: %w", key, err)
		}
		out[key] = string(decoded)
	}
	return out, nil
}
