package gotemplate

import (
	"context"
	"regexp"
	"regexp/syntax"
	"strings"
	"text/template"
)

// search looks for all matches of a regular expression. One search takes time in proportion to pattern and text; one for each match, which may
// all read to the end of the text, the square of it.
type search struct {
	ctx context.Context // functions of templates have no other way to hear of it
}

// compile refuses patterns with which one search of a text would take long.
func compile(pattern, text string) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, errPattern
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst)*(len(text)+1) > maxSearch {
		return nil, errSearch
	}
	return regexp.Compile(pattern)
}

// all are the places of at most n matches with their groups; n < 0 for every one. It looks for 1, 2, 4, … of them, with a look at the time
// before each, so what it takes at the most is twice what was left.
func (s search) all(r *regexp.Regexp, text string, n int) ([][]int, error) {
	for limit := 1; ; limit *= 2 {
		if err := context.Cause(s.ctx); err != nil {
			return nil, err
		}
		if n >= 0 {
			limit = min(limit, n)
		}
		found := r.FindAllStringSubmatchIndex(text, limit)
		if len(found) < limit || limit == n {
			return found, nil
		}
		if perMatch := 32 + 16*(1+r.NumSubexp()); len(found)*perMatch > maxValue {
			return nil, errGrowth
		}
	}
}

func (s search) match(pattern, text string) (bool, error) {
	r, err := compile(pattern, text)
	if err != nil {
		return false, err
	}
	return r.MatchString(text), nil
}

func (s search) find(pattern, text string) (string, error) {
	r, err := compile(pattern, text)
	if err != nil {
		return "", err
	}
	return r.FindString(text), nil
}

func (s search) findAll(pattern, text string, n int) ([]string, error) {
	r, err := compile(pattern, text)
	if err != nil {
		return []string{}, err
	}
	places, err := s.all(r, text, n)
	if err != nil {
		return []string{}, err
	}
	var out []string
	for _, m := range places {
		out = append(out, text[m[0]:m[1]])
	}
	return out, nil
}

// replace puts what with gives for a match in its place.
func (s search) replace(pattern, text string, with func(r *regexp.Regexp, out []byte, m []int) ([]byte, error)) (string, error) {
	r, err := compile(pattern, text)
	if err != nil {
		return "", err
	}
	places, err := s.all(r, text, -1)
	if err != nil {
		return "", err
	}
	var out []byte
	end := 0
	for _, m := range places {
		out = append(out, text[end:m[0]]...)
		if out, err = with(r, out, m); err != nil {
			return "", err
		}
		if len(out) > maxValue {
			return "", errGrowth
		}
		end = m[1]
	}
	return string(append(out, text[end:]...)), nil
}

func (s search) replaceAll(pattern, text, replacement string) (string, error) {
	references := strings.Count(replacement, "$") // each may be the whole match
	return s.replace(pattern, text, func(r *regexp.Regexp, out []byte, m []int) ([]byte, error) {
		if len(replacement)+references*(m[1]-m[0]) > maxValue {
			return nil, errGrowth
		}
		return r.ExpandString(out, replacement, text, m), nil
	})
}

func (s search) replaceAllLiteral(pattern, text, replacement string) (string, error) {
	return s.replace(pattern, text, func(_ *regexp.Regexp, out []byte, _ []int) ([]byte, error) { return append(out, replacement...), nil })
}

// split is regexp.Split.
func (s search) split(pattern, text string, n int) ([]string, error) {
	r, err := compile(pattern, text)
	if err != nil {
		return []string{}, err
	}
	if n == 0 {
		return nil, nil
	}
	if pattern != "" && text == "" {
		return []string{""}, nil
	}
	places, err := s.all(r, text, n)
	if err != nil {
		return []string{}, err
	}
	var out []string
	begin, end := 0, 0
	for _, m := range places {
		if n > 0 && len(out) == n-1 {
			break
		}
		if end = m[0]; m[1] != 0 {
			out = append(out, text[begin:end])
		}
		begin = m[1]
	}
	if end != len(text) {
		out = append(out, text[begin:])
	}
	return out, nil
}

func (s search) functions() template.FuncMap {
	out := template.FuncMap{}
	for name, f := range map[string]any{
		"Match": s.match, "Find": s.find, "FindAll": s.findAll, "ReplaceAll": s.replaceAll, "ReplaceAllLiteral": s.replaceAllLiteral, "Split": s.split,
	} {
		out["regex"+name], out["mustRegex"+name] = f, f
	}
	out["regexMatch"] = func(pattern, text string) (bool, error) {
		if len(pattern) > maxPattern {
			return false, errPattern
		}
		if _, err := syntax.Parse(pattern, syntax.Perl); err != nil {
			return false, nil //nolint:nilerr // because what is no regular expression has always matched nothing
		}
		return s.match(pattern, text)
	}
	return out
}
