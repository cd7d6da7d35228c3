package gotemplate

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"
)

// checks refuse arguments with which a function would make far more than it is given, or take long over it. size is that of all arguments.
var checks = map[string]func(args []reflect.Value, size int) error{
	"replace": growth(func(a []reflect.Value) int { return textLen(a, 2) + strings.Count(str(a, 2), str(a, 0))*textLen(a, 1) }),
	"wrapWith": growth(func(a []reflect.Value) int {
		return textLen(a, 2) + (1+textLen(a, 2)/max(1, int(a[0].Int())))*textLen(a, 1)*2
	}),
	"indent": growth(padded), "nindent": growth(padded),
	"join":      growth(func(a []reflect.Value) int { return items(a, 1) * textLen(a, 0) }),
	"split":     growth(parts),
	"splitList": growth(parts),
	"splitn":    growth(func(a []reflect.Value) int { return countParts(str(a, 2), str(a, 0)) }),
	"uniq":      pairs, "mustUniq": pairs,
	"without": crossed, "mustWithout": crossed,
	"printf":   printed,
	"fromJson": tokensIn, "mustFromJson": tokensIn, "fromYAML": tokensIn,
	"semver": versions, "semverCompare": versions,
	"add1f": operands, "addf": operands, "subf": operands, "divf": operands, "mulf": operands,
}

func growth(estimate func(args []reflect.Value) int) func([]reflect.Value, int) error {
	return func(args []reflect.Value, _ int) error {
		if n := estimate(args); n > maxValue || n < 0 {
			return errGrowth
		}
		return nil
	}
}

func padded(a []reflect.Value) int {
	return textLen(a, 1) + (1+strings.Count(str(a, 1), "\n"))*int(a[0].Int())
}

func parts(a []reflect.Value) int { return countParts(str(a, 1), str(a, 0)) }

// countParts estimates the size of the parts of a text: each takes an entry of a list or map.
func countParts(text, separator string) int {
	const perPart = 32
	if separator == "" {
		return utf8.RuneCountInString(text) * perPart
	}
	return (strings.Count(text, separator)+1)*perPart + len(text)
}

// pairs is for functions that compare each item of a list with each other.
func pairs(a []reflect.Value, size int) error { return work(items(a, 0), size) }

// crossed is for functions that compare each item of a list with each other argument.
func crossed(a []reflect.Value, size int) error {
	return work(items(a, 0)*items(a, 1), size/max(1, items(a, 0)+items(a, 1)))
}

// work fails when n comparisons of values of a size take too long.
func work(n, size int) error {
	const perStep = 16
	if size > 0 && n > maxWork/(1+size/perStep) {
		return errWork
	}
	return nil
}

// wide finds widths of printf that are large, or come from an argument; padding finds any.
var (
	wide    = regexp.MustCompile(`%[-+# 0]*(\[\d+\])?(\*|\d{4,})|%[^a-zA-Z%]*\.(\[\d+\])?(\*|\d{4,})`)
	padding = regexp.MustCompile(`%[^a-zA-Z%]*[1-9]`)
)

// printed estimates what printf needs: each argument once, with quotes, types and widths, or with [n] once for each verb.
func printed(a []reflect.Value, size int) error {
	format := str(a, 0)
	if wide.MatchString(format) {
		return errWidth
	}
	const quoted, perValue, missing = 4, 16, 8
	args := size - len(format)
	need := args * quoted
	if padding.MatchString(format) {
		need += args / perValue * maxWidth
	}
	if strings.Contains(format, "[") {
		need *= max(1, strings.Count(format, "%"))
	}
	if need += len(format) * missing; need > maxTransient || need < 0 {
		return errGrowth
	}
	return nil
}

func tokensIn(a []reflect.Value, _ int) error {
	if tokens(str(a, 0)) > maxTokens {
		return errTokens
	}
	return nil
}

// tokens is about how many values a text has as YAML or JSON, never less.
func tokens(text string) int {
	n := 1
	for i := range len(text) {
		switch text[i] {
		case '\n', '\r', ',', '[', '{':
			n++
		case '-', '?', ':':
			if i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\t' {
				n++
			}
		}
	}
	return n
}

func versions(a []reflect.Value, _ int) error {
	for i := range a {
		if textLen(a, i) > maxVersion {
			return errVersion
		}
	}
	return nil
}

func operands(a []reflect.Value, _ int) error {
	if items(a, len(a)-1) > maxOperands {
		return errOperands
	}
	return nil
}

// sprintf is printf: its arguments have been looked at.
func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

func str(a []reflect.Value, i int) string {
	if i < len(a) {
		v := a[i]
		for v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		if v.Kind() == reflect.String {
			return v.String()
		}
	}
	return ""
}

func textLen(a []reflect.Value, i int) int { return len(str(a, i)) }

func items(a []reflect.Value, i int) int {
	if i < 0 || i >= len(a) {
		return 0
	}
	v := a[i]
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return v.Len()
	}
	return 0
}
