package unit

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestParse(t *testing.T) {
	service := func(lines ...string) []byte {
		return []byte("[Service]\nExecStart=/bin/true\n" + strings.Join(lines, "\n"))
	}
	for name, tc := range map[string]struct {
		files [][]byte
		check func(g *WithT, u *Unit)
		err   string
	}{
		"When a unit says little it should have the usual values": {
			files: [][]byte{service()},
			check: func(g *WithT, u *Unit) {
				g.Expect(u.Type).To(Equal(Simple))
				g.Expect(u.Restart).To(Equal(RestartNo))
				g.Expect(u.TimeoutStart).To(Equal(90 * time.Second))
			},
		},
		"When it is a oneshot it should start without a bound": {
			files: [][]byte{service("Type=oneshot", "ExecStart=/bin/false")},
			check: func(g *WithT, u *Unit) {
				g.Expect(u.TimeoutStart).To(BeZero())
				g.Expect(u.Start).To(HaveLen(2))
			},
		},
		"When a drop-in empties a list it should begin anew": {
			files: [][]byte{service("Environment=A=1"), []byte("[Service]\nExecStart=\nExecStart=-/bin/other \"a b\"\nEnvironment=B=2")},
			check: func(g *WithT, u *Unit) {
				g.Expect(u.Start).To(Equal([]Command{{Words: []string{"/bin/other", `"a b"`}, IgnoreErrors: true}}))
				g.Expect(u.Environment).To(Equal([]string{"A=1", "B=2"}))
			},
		},
		"When a line is continued it should be joined, comments left out": {
			files: [][]byte{[]byte("[Service]\nExecStart=/bin/echo \\\n  one \\\n# no\n  two\n")},
			check: func(g *WithT, u *Unit) {
				g.Expect(u.Start[0].Words).To(Equal([]string{"/bin/echo", "one", "two"}))
			},
		},
		"When dependencies and conditions are given it should keep them": {
			files: [][]byte{append([]byte("[Unit]\nAfter=a.service b.service\nRequires=a.service\nBefore=z.service\nConditionPathExists=!/etc/x\n"), service()...)},
			check: func(g *WithT, u *Unit) {
				g.Expect(u.After).To(Equal([]string{"a.service", "b.service"}))
				g.Expect(u.Before).To(Equal([]string{"z.service"}))
				g.Expect(u.Conditions).To(Equal([]Condition{{Path: "/etc/x", Negated: true}}))
			},
		},
		"When a setting is unknown it should be noted": {
			files: [][]byte{service("Slice=x.slice", "X-Thing=1")},
			check: func(g *WithT, u *Unit) {
				g.Expect(u.Ignored).To(Equal([]string{"Service.Slice", "Service.X-Thing"}))
			},
		},
		"When it has no ExecStart it should say so":              {files: [][]byte{[]byte("[Service]\nType=simple")}, err: "ExecStart is missing"},
		"When it runs as somebody else it should refuse":         {files: [][]byte{service("User=core")}, err: "line 3: User: units run as root"},
		"When its type is unknown it should refuse":              {files: [][]byte{service("Type=dbus")}, err: `"dbus" is not one of`},
		"When a condition is unknown it should refuse":           {files: [][]byte{append([]byte("[Unit]\nConditionVirtualization=no\n"), service()...)}, err: "not supported"},
		"When a quote is open it should refuse":                  {files: [][]byte{[]byte("[Service]\nExecStart=/bin/echo \"a")}, err: "is not closed"},
		"When a program's path is relative it should refuse":     {files: [][]byte{[]byte("[Service]\nExecStart=bin/x")}, err: "must be an absolute path"},
		"When a line is no setting it should name it":            {files: [][]byte{[]byte("[Service]\nnonsense")}, err: "line 2: neither a section nor a setting"},
		"When a file is huge it should refuse":                   {files: [][]byte{make([]byte, maxUnit+1)}, err: "more than"},
		"When a drop-in is wrong it should say which":            {files: [][]byte{service(), []byte("[Service]\nRestartSec=soon")}, err: `drop-in 1: line 2: RestartSec: "soon"`},
		"When a long service has two commands it should refuse":  {files: [][]byte{service("ExecStart=/bin/false")}, err: "needs Type=oneshot"},
		"When a oneshot is to restart always it should refuse":   {files: [][]byte{service("Type=oneshot", "Restart=always")}, err: "doesn't go with"},
		"When EnvironmentFile is relative it should refuse":      {files: [][]byte{service("EnvironmentFile=x")}, err: "must be absolute"},
		"When Environment is no assignment it should refuse":     {files: [][]byte{service("Environment=x")}, err: "not name=value"},
		"When more than 64 commands are given it should refuse":  {files: [][]byte{service(strings.Repeat("ExecStartPre=/bin/true\n", 65))}, err: "more than 64 commands"},
		"When a line is longer than allowed it should refuse":    {files: [][]byte{service("Environment=A=" + strings.Repeat("x", maxLine))}, err: "longer than"},
		"When a continued line grows forever it should refuse":   {files: [][]byte{service("ExecStartPre=/bin/x \\\n" + strings.Repeat("yyyyyyyyyyyyyyyy\\\n", 2000))}, err: "longer than"},
		"When a section is not closed it should say so":          {files: [][]byte{[]byte("[Service")}, err: "closing bracket"},
		"When a time is larger than a month it should refuse it": {files: [][]byte{service("RestartSec=99999999h")}, err: "is not a time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			u, err := Parse("x.service", tc.files...)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			tc.check(g, u)
		})
	}
}

func TestExpand(t *testing.T) {
	env := map[string]string{"IP": "10.0.0.1", "LIST": "a  b", "EMPTY": ""}
	for line, want := range map[string][]string{
		`/bin/x --ip=${IP} --other=$IP`: {"/bin/x", "--ip=10.0.0.1", "--other=10.0.0.1"},
		`/bin/x $LIST`:                  {"/bin/x", "a", "b"},
		`/bin/x "$LIST"`:                {"/bin/x", "a  b"},
		`/bin/x $EMPTY ${MISSING} end`:  {"/bin/x", "", "end"},
		`/bin/x $$HOME 100%% %n %N`:     {"/bin/x", "$HOME", "100%", "x.service", "x"},
		`/bin/x 'single $IP'`:           {"/bin/x", "single 10.0.0.1"},
		`/bin/x a\ b "c\"d"`:            {"/bin/x", "a b", `c"d`},
	} {
		t.Run("When a command is "+line+" it should be expanded as systemd does", func(t *testing.T) {
			g := NewWithT(t)
			words, err := split(line)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(expand(Command{Words: words}, "x.service", env)).To(Equal(want))
		})
	}
	t.Run("When a specifier is unknown it should refuse rather than run something else", func(t *testing.T) {
		_, err := expand(Command{Words: []string{"/bin/x", "%h"}}, "x.service", nil)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("%h")))
	})
}

func TestDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{"5": 5 * time.Second, "1min 30s": 90 * time.Second, "100ms": 100 * time.Millisecond, "infinity": 0, "2h": 2 * time.Hour} {
		NewWithT(t).Expect(duration(in)).To(Equal(want), in)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("[Unit]\nAfter=a\n[Service]\nType=notify\nExecStart=/bin/x $A ${B}\\\n c\nRestartSec=1min\n")
	f.Add("[Service]\nExecStart=-\"a\" 'b' \\\n#c\n")
	f.Fuzz(func(t *testing.T, data string) {
		u, err := Parse("x.service", []byte(data))
		if err != nil {
			return
		}
		for _, c := range u.Start {
			_, _ = expand(c, u.Name, map[string]string{"A": "1"})
		}
	})
}
