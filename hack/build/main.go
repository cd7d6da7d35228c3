// Command build compiles what make's targets ask for, and tells the person who waits what is built, how far it is and how long it will take.
//
//	go run ./hack/build [-kubernetes 1.36.3] PART...
//
// On a terminal it rewrites one line; elsewhere it prints a line at the end of each step and one each half minute. What Go's cache has
// takes no longer than the go command itself, and is said in one line for each step.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/cli/terminal"
	"hcp.internal/platform/internal/local/builds"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "interrupted; what has been compiled is kept, so the next build goes on from here")
		os.Exit(130)
	default:
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

// parts are what can be asked for, by name.
var parts = map[string]func(root, kubernetes string) ([]builds.Target, error){
	"programs": func(root, _ string) ([]builds.Target, error) { return []builds.Target{builds.Programs(root)}, nil },
	"kubernetes": func(_, version string) ([]builds.Target, error) {
		bundle, err := builds.Kubernetes(version)
		if err != nil {
			return nil, err
		}
		node, errNode := builds.KubernetesNode(version)
		kubectl, errKubectl := builds.Kubectl(version)
		return []builds.Target{bundle, node, kubectl}, errors.Join(errNode, errKubectl)
	},
	"capi":       func(string, string) ([]builds.Target, error) { return []builds.Target{builds.ClusterAPI()}, nil },
	"clusterctl": func(string, string) ([]builds.Target, error) { return []builds.Target{builds.Clusterctl()}, nil },
	"capa":       func(string, string) ([]builds.Target, error) { return []builds.Target{builds.ProviderAWS()}, nil },
	"karpenter":  func(string, string) ([]builds.Target, error) { return []builds.Target{builds.Karpenter()}, nil },
	"flannel":    func(string, string) ([]builds.Target, error) { return []builds.Target{builds.Flannel()}, nil },
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	kubernetes := flags.String("kubernetes", "", "version of Kubernetes, with or without v")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := builds.FindRoot(".")
	if err != nil {
		return err
	}
	targets, err := targetsOf(root, strings.TrimPrefix(*kubernetes, "v"), flags.Args())
	if err != nil {
		return err
	}
	return build(ctx, builds.NewQueue(root, clock.RealClock{}, targets...), progress.NewDisplay(out, terminal.Rewritable(out), clock.RealClock{}))
}

// build builds all that a queue has.
func build(ctx context.Context, queue *builds.Queue, display *progress.Display) error {
	display.Number(queue.Step().Total)
	for !queue.Empty() {
		err := display.Do(ctx, "building "+queue.Step().Name, func(ctx context.Context, say func(string, ...any)) error {
			return queue.Next(ctx, func(s builds.Step) { say("%s, %s", s.Progress, builds.About(s.Left)) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// targetsOf lists what parts consist of.
func targetsOf(root, kubernetes string, names []string) ([]builds.Target, error) {
	var targets []builds.Target
	known := strings.Join(slices.Sorted(maps.Keys(parts)), ", ")
	for _, name := range names {
		part, ok := parts[name]
		if !ok {
			return nil, fmt.Errorf("unknown part %q: use some of %s", name, known)
		}
		more, err := part(root, kubernetes)
		if err != nil {
			return nil, err
		}
		targets = append(targets, more...)
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("nothing to build: name some of %s", known)
	}
	return targets, nil
}
