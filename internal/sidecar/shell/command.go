// Package shell stands in for the shell that manifests of OpenShift payloads start our own programs by. Our image has none, and needs none: it knows
// exec, with variables of the environment, and nothing else.
package shell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Command is `hcp-sidecar sh`.
func Command() *cobra.Command {
	return &cobra.Command{
		Use:     "sh -c 'exec PROGRAM ARGUMENT...'",
		Aliases: []string{"bash"},
		Short:   "Start another program, with variables in its arguments, as a shell would",
		Long: `Start another program in place of this one, for manifests that were written for images with a shell.

A command is exec, the program and its arguments, separated by spaces; $NAME and ${NAME} stand for variables of the environment. There are no
quotes, pipes, redirections or other commands.`,
		Example:            `  hcp-sidecar sh -c 'exec control-plane-operator resolve-dns ${HOSTNAME}.etcd-discovery.${NAMESPACE}.svc'`,
		DisableFlagParsing: true,
		SilenceUsage:       true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
				return cmd.Help()
			}
			if len(args) != 2 || args[0] != "-c" {
				return errors.New("it must be called with -c and a command that begins with exec: this is no shell")
			}
			argv, err := parse(args[1], os.LookupEnv)
			if err != nil {
				return err
			}
			program, err := exec.LookPath(argv[0])
			if err != nil {
				return fmt.Errorf("looking for %s: %w", argv[0], err)
			}
			return fmt.Errorf("starting %s: %w", program, syscall.Exec(program, argv, os.Environ()))
		},
	}
}

// special are characters that mean something to a shell, and nothing here.
const special = "'\"`\\|&;<>()*?[]#~!\n"

var variable = regexp.MustCompile(`\$(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)`)

// parse gives the program and its arguments. Values of variables are not split.
func parse(command string, lookup func(string) (string, bool)) ([]string, error) {
	words := strings.Fields(command)
	if len(words) < 2 || words[0] != "exec" || strings.ContainsAny(command, special) {
		return nil, fmt.Errorf("command %q is more than exec, a program and its arguments: this is no shell", command)
	}
	var missing []string
	argv := words[1:]
	for i, word := range argv {
		argv[i] = variable.ReplaceAllStringFunc(word, func(v string) string {
			name := strings.Trim(v, "${}")
			value, ok := lookup(name)
			if !ok {
				missing = append(missing, name)
			}
			return value
		})
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("command %q needs the environment variables %s: set them", command, strings.Join(missing, ", "))
	}
	return argv, nil
}

// TestCommand is `hcp-sidecar test`, which startup probes of native sidecars call.
func TestCommand() *cobra.Command {
	return &cobra.Command{
		Use: "test -f FILE", Short: "Say by the exit code whether a file is there, as startup probes ask", Example: "  hcp-sidecar test -f /var/run/secrets/openshift/serviceaccount/token",
		DisableFlagParsing: true, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
				return cmd.Help()
			}
			if len(args) != 2 || args[0] != "-f" {
				return errors.New("it must be called with -f and a file")
			}
			info, err := os.Stat(args[1])
			if err == nil && !info.Mode().IsRegular() {
				err = fmt.Errorf("%s is no regular file", args[1])
			}
			return err
		},
	}
}
