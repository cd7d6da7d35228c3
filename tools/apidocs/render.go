package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
)

const preview = "(TechPreview)"

// renderer writes types once, in the order in which kinds reach them.
type renderer struct {
	packages map[string]*pkg
	usedBy   map[*typ][]*typ
	out      bytes.Buffer
}

func render(packages []*pkg) []byte {
	r := &renderer{packages: map[string]*pkg{}, usedBy: map[*typ][]*typ{}}
	slices.SortStableFunc(packages, func(a, b *pkg) int { return strings.Compare(a.rank(), b.rank()) })
	for _, p := range packages {
		r.packages[p.path] = p
	}
	for _, p := range packages {
		for _, t := range p.sorted() {
			for _, f := range t.fields {
				for _, to := range f.refs {
					if used := r.resolve(p, to); used != nil && !slices.Contains(r.usedBy[used], t) {
						r.usedBy[used] = append(r.usedBy[used], t)
					}
				}
			}
		}
	}
	r.out.WriteString("# API reference\n\nGenerated from the doc comments of `api/`; `kubectl explain` says the same. A field that is marked as preview exists only where\n" +
		"`hypershift install --tech-preview-no-upgrade` was run. What API servers check by themselves is listed with each field; further checks run in\nthe operators and end up in conditions.\n\n")
	r.contents(packages)
	for _, p := range packages {
		fmt.Fprintf(&r.out, "## %s\n\n", p.title())
		if p.doc != "" {
			fmt.Fprintf(&r.out, "%s\n\n", paragraph(p.doc))
		}
		types := p.sorted()
		sort.SliceStable(types, func(i, j int) bool { return types[i].kind && !types[j].kind })
		for _, t := range types {
			r.typ(t)
		}
	}
	return append(bytes.TrimRight(r.out.Bytes(), "\n"), '\n')
}

func (r *renderer) contents(packages []*pkg) {
	for _, p := range packages {
		var kinds []string
		for _, t := range p.sorted() {
			if t.kind {
				kinds = append(kinds, fmt.Sprintf("[%s](#%s)", t.name, t.anchor()))
			}
		}
		if len(kinds) > 0 {
			fmt.Fprintf(&r.out, "- `%s`: %s\n", p.title(), strings.Join(kinds, ", "))
		}
	}
	r.out.WriteString("\n")
}

// rank sorts what users write first, and types of no group last.
func (p *pkg) rank() string {
	switch {
	case p.group == "hypershift.openshift.io":
		return "0"
	case p.group == "":
		return "2" + p.path
	}
	return "1" + p.path
}

func (p *pkg) title() string {
	version := p.path[strings.LastIndexByte(p.path, '/')+1:]
	if p.group == "" {
		return "Types of " + p.path
	}
	return p.group + "/" + version
}

func (p *pkg) sorted() []*typ {
	var all []*typ
	for _, t := range p.types {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *typ) int { return strings.Compare(a.name, b.name) })
	return all
}

func (t *typ) anchor() string {
	return strings.ToLower(strings.ReplaceAll(t.pkg.path, "/", "-") + "-" + t.name)
}

// resolve finds the type that a reference in p names, or nil when it is of another module.
func (r *renderer) resolve(p *pkg, to ref) *typ {
	if to.from != "" {
		p = r.packages[p.imports[to.from]]
	}
	if p == nil {
		return nil
	}
	return p.types[to.name]
}

func (r *renderer) typ(t *typ) {
	fmt.Fprintf(&r.out, "### <a id=%q></a>%s\n\n", t.anchor(), t.name)
	if users := r.usedBy[t]; len(users) > 0 {
		links := make([]string, len(users))
		for i, u := range users {
			links[i] = fmt.Sprintf("[%s](#%s)", u.name, u.anchor())
		}
		fmt.Fprintf(&r.out, "In %s.\n\n", strings.Join(links, ", "))
	}
	if t.doc.text != "" {
		fmt.Fprintf(&r.out, "%s\n\n", paragraph(t.doc.text))
	}
	if t.is != "" {
		fmt.Fprintf(&r.out, "%s\n\n", strings.Join(append([]string{"A `" + t.is + "`."}, demands(t.doc.markers)...), " "))
		return
	}
	rules := demands(t.doc.markers)
	for _, d := range rules {
		fmt.Fprintf(&r.out, "- %s\n", d)
	}
	if len(rules) > 0 {
		r.out.WriteString("\n")
	}
	if len(t.fields) == 0 {
		r.out.WriteString("It has no fields.\n\n")
		return
	}
	r.out.WriteString("| Field | Meaning |\n|---|---|\n")
	for _, f := range t.fields {
		if f.name != "" || len(f.refs) == 0 || f.refs[0].from != "metav1" { // every kind has those
			r.field(t, f)
		}
	}
	r.out.WriteString("\n")
}

func (r *renderer) field(t *typ, f field) {
	shown := "`" + f.expr + "`"
	for _, to := range f.refs {
		if used := r.resolve(t.pkg, to); used != nil {
			shown = fmt.Sprintf("[`%s`](#%s)", f.expr, used.anchor())
		}
	}
	name := "`" + f.name + "`"
	if f.name == "" {
		name = "(inlined)"
	}
	cell := name + "<br>" + shown
	if slices.Contains(f.doc.markers, "required") {
		cell += "<br>required"
	}
	about := strings.Join(strings.Fields(strings.ReplaceAll(f.doc.text, "\n\n", " <br><br> ")), " ")
	about = strings.ReplaceAll(about, " "+preview, "")
	if strings.Contains(f.doc.text, preview) {
		cell += "<br>preview"
	}
	parts := append([]string{about}, demands(f.doc.markers)...)
	fmt.Fprintf(&r.out, "| %s | %s |\n", escape(cell), escape(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "<br>")))
}

// paragraph keeps paragraphs apart and joins their lines.
func paragraph(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(paragraphs, "\n\n")
}

// escape makes a text fit for a cell of a table: one line, no bars.
func escape(s string) string {
	s = strings.ReplaceAll(s, "\n\n", "<br><br>")
	s = strings.Join(strings.Fields(s), " ")
	return strings.ReplaceAll(s, "|", `\|`)
}

var (
	ruleMessage = regexp.MustCompile("message=(?:\"((?:[^\"\\\\]|\\\\.)*)\"|`([^`]*)`)")
	itemsPrefix = "kubebuilder:validation:items:"
)

// demands says in words what markers demand.
func demands(markers []string) []string {
	var bounds, rest []string
	for _, m := range markers {
		each := ""
		if below, ok := strings.CutPrefix(m, itemsPrefix); ok {
			each, m = "each ", "kubebuilder:validation:"+below
		}
		name, value, _ := strings.Cut(strings.TrimPrefix(m, "kubebuilder:validation:"), "=")
		value = strings.Trim(strings.TrimPrefix(value, "="), "`")
		switch strings.TrimSuffix(name, ":") {
		case "kubebuilder:default":
			rest = append(rest, "Default: `"+value+"`.")
		case "Enum":
			rest = append(rest, "One of `"+strings.ReplaceAll(strings.Trim(value, "{}"), ";", "`, `")+"`.")
		case "Minimum", "MinLength", "MinItems", "MinProperties", "Maximum", "MaxLength", "MaxItems", "MaxProperties":
			bounds = append(bounds, each+fmt.Sprintf(words[name], value))
		case "Pattern":
			rest = append(rest, "Must match `"+value+"`.")
		case "Format":
			rest = append(rest, "Format: "+value+".")
		}
		if match := ruleMessage.FindStringSubmatch(m); strings.Contains(m, "XValidation:") && match != nil {
			message := strings.ReplaceAll(match[1]+match[2], `\"`, `"`)
			rest = append(rest, "Rule: "+message+".")
		}
	}
	if len(bounds) > 0 {
		rest = append([]string{"Bounds: " + strings.Join(bounds, ", ") + "."}, rest...)
	}
	return rest
}

var words = map[string]string{
	"Minimum": "at least %s", "Maximum": "at most %s", "MinLength": "length at least %s", "MaxLength": "length at most %s",
	"MinItems": "items at least %s", "MaxItems": "items at most %s", "MinProperties": "entries at least %s", "MaxProperties": "entries at most %s",
}
