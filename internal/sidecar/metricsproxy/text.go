package metricsproxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
)

// maxLine bounds a line of metrics.
const maxLine = 1 << 20

// label is one that a sample gets unless it has it.
type label struct{ name, value string }

// merger puts the metrics of several pods together.
type merger struct {
	out    bytes.Buffer
	keep   func(metric string) bool
	headed map[string]bool // families whose comments have been written
}

// add copies the samples that are kept, in the text format of Prometheus, with labels. What is no sample is left out.
func (m *merger) add(in io.Reader, labels []label) error {
	comments := map[string][]string{}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "#") {
			if fields := strings.SplitN(line, " ", 4); len(fields) >= 3 && (fields[1] == "HELP" || fields[1] == "TYPE") && validName(fields[2]) && len(comments[fields[2]]) < 2 {
				comments[fields[2]] = append(comments[fields[2]], line)
			}
			continue
		}
		end := strings.IndexAny(line, "{ \t")
		if end <= 0 || !validName(line[:end]) || !m.keep(line[:end]) {
			continue
		}
		sample, ok := labelled(line, end, labels)
		if !ok {
			continue
		}
		m.head(line[:end], comments)
		m.out.WriteString(sample)
		m.out.WriteByte('\n')
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading metrics: %w", err)
	}
	return nil
}

// head writes the comments of a sample's family, once.
func (m *merger) head(metric string, comments map[string][]string) {
	for _, family := range []string{metric, strings.TrimSuffix(metric, "_bucket"), strings.TrimSuffix(metric, "_sum"), strings.TrimSuffix(metric, "_count")} {
		if lines := comments[family]; len(lines) > 0 && !m.headed[family] {
			m.headed[family] = true
			m.out.WriteString(strings.Join(lines, "\n") + "\n")
			return
		}
	}
}

// labelled adds labels to a sample whose name ends at end. ok is false when it is malformed.
func labelled(line string, end int, labels []label) (sample string, ok bool) {
	present, rest := "", line[end:]
	if line[end] == '{' {
		closing := closingBrace(line[end:])
		if closing < 0 {
			return "", false
		}
		present, rest = strings.TrimSuffix(strings.TrimSpace(line[end+1:end+closing]), ","), line[end+closing+1:]
	}
	parts := []string{}
	if present != "" {
		parts = append(parts, present)
	}
	for _, l := range labels {
		if l.value != "" && !hasLabel(present, l.name) {
			parts = append(parts, l.name+`="`+escaper.Replace(l.value)+`"`)
		}
	}
	return line[:end] + "{" + strings.Join(parts, ",") + "} " + strings.TrimSpace(rest), strings.TrimSpace(rest) != ""
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// closingBrace is where the labels end that s begins with; -1: nowhere.
func closingBrace(s string) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case !quoted && s[i] == '}':
			return i
		}
	}
	return -1
}

// hasLabel says whether labels as they are written have one of a name.
func hasLabel(labels, name string) bool {
	quoted, start := false, 0
	for i := 0; i < len(labels); i++ {
		switch {
		case quoted && labels[i] == '\\':
			i++
		case labels[i] == '"':
			quoted = !quoted
		case !quoted && labels[i] == ',':
			start = i + 1
		case !quoted && labels[i] == '=':
			if strings.TrimSpace(labels[start:i]) == name {
				return true
			}
		}
	}
	return false
}

// validName says whether s may be the name of a metric.
func validName(s string) bool {
	for i, r := range s {
		if !(r == '_' || r == ':' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || i > 0 && r >= '0' && r <= '9') {
			return false
		}
	}
	return s != ""
}
