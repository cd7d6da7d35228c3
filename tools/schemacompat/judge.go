package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hcp.internal/tools/internal/schema"
)

// compareAbout judges what a definition says about the kind itself.
func compareAbout(was, is schema.Facts, add func(fact, text string)) {
	for _, fact := range []string{"kind", "scope", "version", "served", "storage"} {
		if was[fact] != is[fact] {
			add(fact, fmt.Sprintf("%s was %s and is %s", fact, was[fact], is[fact]))
		}
	}
	for _, fact := range []string{"short", "categories", "subresources"} {
		for _, value := range split(was[fact]) {
			if !slices.Contains(split(is[fact]), value) {
				add(fact, fmt.Sprintf("%s lost %s", fact, value))
			}
		}
	}
	columns := func(about schema.Facts) []string {
		var all []string
		for fact, value := range about {
			if strings.HasPrefix(fact, "column ") {
				all = append(all, value)
			}
		}
		slices.Sort(all)
		return all
	}
	for _, column := range columns(was) {
		if !slices.Contains(columns(is), column) {
			add("column", fmt.Sprintf("the column %q is gone or changed", column))
		}
	}
}

func split(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(s string) bool { return s == "" })
}

// compareField judges what a definition says about a field.
func compareField(was, is schema.Facts, add func(fact, text string)) {
	if was["type"] != is["type"] {
		add("type", fmt.Sprintf("the type was %q and is %q", was["type"], is["type"]))
	}
	if was["required"] == "" && is["required"] != "" && is["default"] == "" {
		add("required", "the field is required now, so objects of before are refused")
	}
	switch {
	case was["default"] == is["default"] || was["default"] == "":
	case is["default"] == "":
		add("default", "the default "+was["default"]+" is gone")
	default:
		add("default", fmt.Sprintf("the default was %s and is %s", was["default"], is["default"]))
	}
	for _, fact := range schema.Names(was, is) {
		if text := stricter(strings.TrimPrefix(fact, "items:"), was[fact], is[fact]); text != "" {
			add(fact, text)
		}
	}
}

// unset are the meanings of facts that are not there.
var unset = map[string]string{"list-type": `"atomic"`, "map-type": `"granular"`}

// stricter says what one fact refuses now and did not before, or how it changed what is merged. It is empty when all is well.
func stricter(fact, was, is string) string {
	if def, ok := unset[fact]; ok {
		was, is = orElse(was, def), orElse(is, def)
	}
	if was == is {
		return ""
	}
	switch fact {
	case "enum":
		return enum(was, is)
	case "minimum", "minLength", "minItems", "minProperties":
		if is == "" || number(is) <= number(orElse(was, lowest(fact))) {
			return ""
		}
		return fmt.Sprintf("%s was %s and is %s", fact, orElse(was, "not there"), is)
	case "maximum", "maxLength", "maxItems", "maxProperties":
		if is == "" || (was != "" && number(is) >= number(was)) {
			return ""
		}
		return fmt.Sprintf("%s was %s and is %s", fact, orElse(was, "not there"), is)
	case "pattern", "format", "embedded-resource":
		if is == "" {
			return ""
		}
		return fmt.Sprintf("%s was %s and is %s", fact, orElse(was, "not there"), is)
	case "list-type", "list-map-keys", "map-type":
		return fmt.Sprintf("%s was %s and is %s", fact, orElse(was, "not there"), orElse(is, "not there"))
	case "nullable", "int-or-string", "preserve-unknown-fields":
		if is == "true" {
			return ""
		}
		return fact + " is gone"
	case schema.Rules:
		return rules(was, is)
	}
	return ""
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// lowest is what every value has: sizes are never below zero.
func lowest(fact string) string {
	if fact == "minimum" {
		return "-9223372036854775808"
	}
	return "0"
}

func number(s string) float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0 // definitions are checked when they are generated
	}
	return n
}

func values(text string) []string {
	var all []any
	_ = json.Unmarshal([]byte(orElse(text, "[]")), &all)
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = fmt.Sprint(v)
	}
	return out
}

func enum(was, is string) string {
	if is == "" {
		return ""
	}
	if was == "" {
		return "an enum is new: " + is
	}
	gone := slices.DeleteFunc(values(was), func(v string) bool { return slices.Contains(values(is), v) })
	if len(gone) == 0 {
		return ""
	}
	return fmt.Sprintf("the enum lost %q", gone)
}

func rules(was, is string) string {
	added := slices.DeleteFunc(values(is), func(rule string) bool {
		return slices.Contains(values(was), rule) || strings.Contains(rule, "oldSelf")
	})
	if len(added) == 0 {
		return ""
	}
	return fmt.Sprintf("rules are new or changed and do not look at oldSelf: %q", added)
}
