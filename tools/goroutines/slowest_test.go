package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSlowest is about hack/slowest.sh, through which make test prints what go test says.
func TestSlowest(t *testing.T) {
	for name, tc := range map[string]struct{ printed, want string }{
		"When all is well it should name the slowest packages, and no failure": {
			printed: "ok  \texample.com/a\t1.500s\nok  \texample.com/b\t(cached)\nok  \texample.com/c\t20.000s\n",
			want:    "\nThe slowest packages:\n     20.0 s  example.com/c\n      1.5 s  example.com/a\n",
		},
		"When tests fail it should name them last, each below its package": {
			printed: "--- FAIL: TestA (0.01s)\n    --- FAIL: TestA/When_x_it_should_y (0.00s)\n        a_test.go:3: bad\nFAIL\nFAIL\texample.com/a\t0.005s\n" +
				"ok  \texample.com/b\t1.000s\nnot a whole line--- FAIL: TestC (0.01s)\nFAIL\nFAIL\texample.com/c\t2.000s\nFAIL\n",
			want: "\nThe slowest packages:\n      2.0 s  example.com/c\n      1.0 s  example.com/b\n      0.0 s  example.com/a\n" +
				"\nFailed:\n  example.com/a\n    TestA\n    TestA/When_x_it_should_y\n  example.com/c\n    TestC\n",
		},
		"When a package can't be built, takes too long or has data races it should say that": {
			printed: "# example.com/a\na.go:3:1: syntax error\nFAIL\texample.com/a [build failed]\npanic: test timed out after 30m0s\n\trunning tests:\n\t\tTestSlow (29m0s)\n" +
				"FAIL\texample.com/b\t1800.005s\n==================\nWARNING: DATA RACE\nFAIL\texample.com/c\t1.005s\nFAIL\n",
			want: "\nThe slowest packages:\n   1800.0 s  example.com/b\n      1.0 s  example.com/c\n" +
				"\nFailed:\n  example.com/a [build failed]\n  example.com/b\n    test timed out after 30m0s\n  example.com/c\n    data races: 1\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.Command(filepath.Join(root, "hack", "slowest.sh"))
			command.Stdin = strings.NewReader(tc.printed)
			out, err := command.CombinedOutput()
			if err != nil {
				t.Fatal(err)
			}
			if got := string(out); got != tc.printed+tc.want {
				t.Errorf("it printed:\n%s\nwant at the end:\n%s", got, tc.want)
			}
		})
	}
}
