package unit

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of what is read.
const (
	maxUnit     = 256 << 10
	maxLine     = 16 << 10
	maxCommands = 64
)

// Type says when a service counts as started.
type Type string

// Types of services.
const (
	Simple  Type = "simple"  // once its process was made
	Oneshot Type = "oneshot" // once its processes have ended well
	Notify  Type = "notify"  // once it says so
)

// Restart says when a service is started again by itself.
type Restart string

// When services are started again.
const (
	RestartNo        Restart = "no"
	RestartAlways    Restart = "always"
	RestartOnFailure Restart = "on-failure"
)

// Command is one command line.
type Command struct {
	Words        []string // with variables and quotes as written, see expand
	IgnoreErrors bool     // written with a leading "-"
}

// EnvironmentFile is a file with variables.
type EnvironmentFile struct {
	Path     string
	Optional bool // written with a leading "-"
}

// Condition is a file that must exist, or must not.
type Condition struct {
	Path    string
	Negated bool
}

// Unit is a service. Lists are in the order of the file.
type Unit struct {
	Name        string
	Description string
	Type        Type

	Before, After, Requires, Wants []string
	WantedBy                       []string
	Conditions                     []Condition

	StartPre, Start, StartPost []Command
	StopPost                   []Command

	Environment      []string // name=value
	EnvironmentFiles []EnvironmentFile
	WorkingDirectory string

	Restart         Restart
	RestartSec      time.Duration //nolint:staticcheck // because it is the name in unit files
	RemainAfterExit bool
	TimeoutStart    time.Duration // 0: no bound
	TimeoutStop     time.Duration
	KillProcessOnly bool // KillMode=process: what it has started is left alone when it stops

	// Ignored are settings that have no effect here, as Section.Key.
	Ignored []string
}

// defaultTimeout is systemd's for starting and stopping; oneshot units start without one.
const defaultTimeout = 90 * time.Second

// Parse reads a unit file and its drop-ins, in order. Settings that this package doesn't know are noted in Ignored, except those
// whose neglect would run something in another way than the author means: these are errors.
func Parse(name string, files ...[]byte) (*Unit, error) {
	u := &Unit{Name: name, Type: Simple, Restart: RestartNo, RestartSec: 100 * time.Millisecond, TimeoutStart: -1, TimeoutStop: defaultTimeout}
	for i, data := range files {
		if len(data) > maxUnit {
			return nil, fmt.Errorf("unit %s: %d bytes are more than the %d that a file may have", name, len(data), maxUnit)
		}
		if err := u.read(string(data)); err != nil {
			if i > 0 {
				return nil, fmt.Errorf("unit %s, drop-in %d: %w", name, i, err)
			}
			return nil, fmt.Errorf("unit %s: %w", name, err)
		}
	}
	if u.TimeoutStart < 0 {
		u.TimeoutStart = defaultTimeout
		if u.Type == Oneshot {
			u.TimeoutStart = 0
		}
	}
	switch {
	case !strings.HasSuffix(name, ".service"):
		return nil, fmt.Errorf("unit %s: only services are supported", name)
	case len(u.Start) == 0:
		return nil, fmt.Errorf("unit %s: ExecStart is missing", name)
	case len(u.Start) > 1 && u.Type != Oneshot:
		return nil, fmt.Errorf("unit %s: more than one ExecStart needs Type=oneshot", name)
	case u.Type == Oneshot && u.Restart == RestartAlways:
		return nil, fmt.Errorf("unit %s: Restart=always doesn't go with Type=oneshot", name)
	}
	return u, nil
}

func (u *Unit) read(data string) error {
	section := ""
	lines := strings.Split(strings.ReplaceAll(data, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line, number := strings.TrimSpace(lines[i]), i+1
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		for strings.HasSuffix(line, "\\") && i+1 < len(lines) {
			i++
			next := strings.TrimSpace(lines[i])
			if next != "" && (next[0] == '#' || next[0] == ';') {
				continue // a comment within a continued line; the backslash before it still counts
			}
			line = strings.TrimSuffix(line, "\\") + " " + next
			if len(line) > maxLine {
				return fmt.Errorf("line %d: longer than %d bytes", number, maxLine)
			}
		}
		if len(line) > maxLine {
			return fmt.Errorf("line %d: longer than %d bytes", number, maxLine)
		}
		if strings.HasPrefix(line, "[") {
			if !strings.HasSuffix(line, "]") {
				return fmt.Errorf("line %d: the section has no closing bracket", number)
			}
			section = line[1 : len(line)-1]
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section == "" {
			return fmt.Errorf("line %d: neither a section nor a setting", number)
		}
		if err := u.set(section, strings.TrimSpace(key), strings.TrimSpace(value)); err != nil {
			return fmt.Errorf("line %d: %s: %w", number, strings.TrimSpace(key), err)
		}
	}
	return nil
}

// set takes one setting.
func (u *Unit) set(section, key, value string) error {
	switch section {
	case "Unit":
		return u.setUnit(key, value)
	case "Install":
		if key == "WantedBy" || key == "RequiredBy" {
			u.WantedBy = list(u.WantedBy, value)
		}
		return nil
	case "Service":
		return u.setService(key, value)
	}
	if !strings.HasPrefix(section, "X-") {
		u.Ignored = append(u.Ignored, section+"."+key)
	}
	return nil
}

func (u *Unit) setUnit(key, value string) error {
	switch key {
	case "Description":
		u.Description = value
	case "Documentation", "DefaultDependencies", "StartLimitIntervalSec", "StartLimitBurst":
	case "Before":
		u.Before = list(u.Before, value)
	case "After":
		u.After = list(u.After, value)
	case "Requires", "BindsTo", "Requisite":
		u.Requires = list(u.Requires, value)
	case "Wants":
		u.Wants = list(u.Wants, value)
	case "ConditionPathExists", "AssertPathExists":
		if value == "" {
			u.Conditions = nil
			return nil
		}
		p, negated := strings.CutPrefix(value, "!")
		if !path.IsAbs(p) {
			return errors.New("the path must be absolute")
		}
		u.Conditions = append(u.Conditions, Condition{Path: path.Clean(p), Negated: negated})
	default:
		if strings.HasPrefix(key, "Condition") || strings.HasPrefix(key, "Assert") {
			return errors.New("this condition is not supported; ConditionPathExists is")
		}
		u.Ignored = append(u.Ignored, "Unit."+key)
	}
	return nil
}

func (u *Unit) setService(key, value string) (err error) {
	switch key {
	case "Type":
		u.Type = Type(value)
		if u.Type == "exec" {
			u.Type = Simple
		}
		if !slices.Contains([]Type{Simple, Oneshot, Notify}, u.Type) {
			return fmt.Errorf("%q is not one of simple, exec, oneshot, notify", value)
		}
	case "ExecStartPre", "ExecCondition":
		u.StartPre, err = commands(u.StartPre, value)
	case "ExecStart":
		u.Start, err = commands(u.Start, value)
	case "ExecStartPost":
		u.StartPost, err = commands(u.StartPost, value)
	case "ExecStopPost":
		u.StopPost, err = commands(u.StopPost, value)
	case "Environment":
		return u.setEnvironment(value)
	case "EnvironmentFile":
		if value == "" {
			u.EnvironmentFiles = nil
			return nil
		}
		p, optional := strings.CutPrefix(value, "-")
		if !path.IsAbs(p) {
			return errors.New("the path must be absolute")
		}
		u.EnvironmentFiles = append(u.EnvironmentFiles, EnvironmentFile{Path: p, Optional: optional})
	case "WorkingDirectory":
		if !path.IsAbs(value) {
			return errors.New("the path must be absolute")
		}
		u.WorkingDirectory = value
	case "Restart":
		u.Restart = Restart(value)
		switch value {
		case "on-abnormal", "on-abort", "on-watchdog":
			u.Restart = RestartOnFailure
		case "no", "always", "on-failure":
		default:
			return fmt.Errorf("%q is not one of no, always, on-failure", value)
		}
	case "RestartSec":
		u.RestartSec, err = duration(value)
	case "TimeoutStartSec":
		u.TimeoutStart, err = duration(value)
	case "TimeoutStopSec":
		u.TimeoutStop, err = duration(value)
	case "TimeoutSec":
		if u.TimeoutStart, err = duration(value); err == nil {
			u.TimeoutStop = u.TimeoutStart
		}
	case "RemainAfterExit":
		u.RemainAfterExit = truth(value)
	case "KillMode":
		u.KillProcessOnly = value == "process" || value == "none"
	case "User", "Group", "DynamicUser", "RootDirectory", "RootImage", "PAMName":
		if value == "root" || value == "" || value == "0" || value == "no" {
			return nil
		}
		return errors.New("units run as root in the machine's own file system here")
	default:
		u.Ignored = append(u.Ignored, "Service."+key)
	}
	return err
}

// setEnvironment adds the variables of a value; the empty value drops all.
func (u *Unit) setEnvironment(value string) error {
	if value == "" {
		u.Environment = nil
		return nil
	}
	words, err := split(value)
	if err != nil {
		return err
	}
	for _, w := range words {
		w = unquote(w)
		if name, _, ok := strings.Cut(w, "="); !ok || name == "" {
			return fmt.Errorf("%q is not name=value", w)
		}
		u.Environment = append(u.Environment, w)
	}
	return nil
}

// list adds the words of a value; the empty value empties the list.
func list(have []string, value string) []string {
	if value == "" {
		return nil
	}
	return append(have, strings.Fields(value)...)
}

func commands(have []Command, value string) ([]Command, error) {
	if value == "" {
		return nil, nil
	}
	if len(have) >= maxCommands {
		return nil, fmt.Errorf("more than %d commands", maxCommands)
	}
	c := Command{}
	for value != "" && strings.ContainsRune("-+!:@", rune(value[0])) {
		switch value[0] {
		case '-':
			c.IgnoreErrors = true
		case ':', '@':
			return nil, fmt.Errorf("the prefix %q is not supported", value[:1])
		}
		value = value[1:]
	}
	words, err := split(value)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, errors.New("the command is empty")
	}
	if program := unquote(words[0]); !path.IsAbs(program) && strings.ContainsAny(program, "/$%") {
		return nil, fmt.Errorf("the program %s must be an absolute path or a plain name", program)
	}
	c.Words = words
	return append(have, c), nil
}

// split cuts a line into words and keeps their quotes: whether a variable is expanded into several words depends on them.
func split(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(s):
			in = true
			word.WriteByte(c)
			i++
			word.WriteByte(s[i])
		case quote != 0:
			word.WriteByte(c)
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			in, quote = true, c
			word.WriteByte(c)
		case c == ' ' || c == '\t' || c == '\n':
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		default:
			in = true
			word.WriteByte(c)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

// unquote takes quotes and backslashes off.
func unquote(s string) string {
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(s):
			i++
			switch s[i] {
			case 'n':
				out.WriteByte('\n')
			case 't':
				out.WriteByte('\t')
			case 's':
				out.WriteByte(' ')
			default:
				out.WriteByte(s[i])
			}
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

func truth(s string) bool {
	return slices.Contains([]string{"1", "yes", "true", "on"}, strings.ToLower(s))
}

// units of time, longest names first where one is the start of another.
var timeUnits = []struct {
	suffix string
	unit   time.Duration
}{
	{"ms", time.Millisecond}, {"us", time.Microsecond}, {"min", time.Minute}, {"hr", time.Hour}, {"h", time.Hour},
	{"sec", time.Second}, {"s", time.Second}, {"m", time.Minute}, {"d", 24 * time.Hour},
}

// maxDuration bounds every time in a unit.
const maxDuration = 1000 * time.Hour

// duration reads systemd's notation: "5", "5s", "1min 30s", "infinity" (0).
func duration(s string) (time.Duration, error) {
	if s == "infinity" {
		return 0, nil
	}
	var total time.Duration
	words := strings.Fields(s)
	if len(words) == 0 {
		return 0, errors.New("the time is empty")
	}
	for _, w := range words {
		unit := time.Second
		for _, t := range timeUnits {
			if number, ok := strings.CutSuffix(w, t.suffix); ok {
				w, unit = number, t.unit
				break
			}
		}
		n, err := strconv.ParseFloat(w, 64)
		if err != nil || n < 0 || n*float64(unit) > float64(maxDuration) {
			return 0, fmt.Errorf("%q is not a time such as 10s or 1min 30s", s)
		}
		total += time.Duration(n * float64(unit))
	}
	return min(total, maxDuration), nil
}
