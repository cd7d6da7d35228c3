package unit

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// variable is how a command line names a variable. "$$" is a dollar sign.
var variable = regexp.MustCompile(`\$\$|\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Za-z_][A-Za-z0-9_]*`)

// expand gives the words of a command. ${NAME} is replaced within a word; a word that is $NAME is replaced by the words of its
// value, possibly none. A variable that isn't there is empty.
func expand(c Command, unit string, env map[string]string) ([]string, error) {
	var out []string
	for _, raw := range c.Words {
		word, err := specifiers(raw, unit)
		if err != nil {
			return nil, err
		}
		if v, ok := strings.CutPrefix(word, "$"); ok && isName(v) {
			out = append(out, strings.Fields(env[v])...)
			continue
		}
		out = append(out, variable.ReplaceAllStringFunc(unquote(word), func(v string) string {
			if v == "$$" {
				return "$"
			}
			return env[strings.Trim(v, "${}")]
		}))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the command %s is empty once variables are replaced", strings.Join(c.Words, " "))
	}
	return out, nil
}

// name is what a variable may be called.
var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func isName(s string) bool { return name.MatchString(s) }

// specifiers replaces %n, %N, %p, %% as in systemd; others are errors, because leaving them would run another command.
func specifiers(s, unit string) (string, error) {
	if !strings.Contains(s, "%") {
		return s, nil
	}
	base := strings.TrimSuffix(unit, ".service")
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' || i+1 == len(s) {
			out.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case '%':
			out.WriteByte('%')
		case 'n':
			out.WriteString(unit)
		case 'N', 'p':
			out.WriteString(base)
		default:
			return "", fmt.Errorf("the specifier %%%c in %s is not supported", s[i], s)
		}
	}
	return out.String(), nil
}

// parseEnvironment reads a file with lines name=value. Quotes round a value are taken off; other lines are left out.
func parseEnvironment(data []byte) map[string]string {
	out := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || !isName(strings.TrimSpace(name)) {
			continue
		}
		out[strings.TrimSpace(name)] = unquote(strings.TrimSpace(value))
	}
	return out
}
