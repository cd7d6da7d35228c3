package tour

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/kubectlpackage"
	"hcp.internal/platform/internal/local"
)

// patience is how long a stop waits for any one thing: images are on this machine, so a minute is the rule.
const patience = 5 * time.Minute

// pollEvery is how often a stop looks at what it waits for.
const pollEvery = 250 * time.Millisecond

// kubectlPackage runs a command of "kubectl package" on the management cluster, shows the command, and hands on each line that it prints.
func kubectlPackage(ctx context.Context, c local.Cluster, say local.Say, args ...string) (string, error) {
	// Short, as somebody in the checkout would type it.
	c.Show("$ kubectl package %s", strings.ReplaceAll(strings.Join(args, " "), c.Settings.Root+"/", ""))
	cmd := kubectlpackage.Command(kubectlpackage.Options{Now: c.Clock.Now, Getenv: func(string) string { return "" }})
	var out bytes.Buffer
	cmd.SetOut(&tee{say: say, all: &out})
	cmd.SetErr(&tee{say: say, all: &bytes.Buffer{}})
	cmd.SetArgs(append(args, "--kubeconfig", c.Kubeconfig))
	if err := cmd.ExecuteContext(ctx); err != nil {
		return "", fmt.Errorf("kubectl package %s: %w", args[0], err)
	}
	return strings.TrimSpace(out.String()), nil
}

// tee keeps what is written, and says each line.
type tee struct {
	say  local.Say
	all  *bytes.Buffer
	said int
}

func (t *tee) Write(p []byte) (int, error) {
	t.all.Write(p)
	for {
		line, _, ok := strings.Cut(t.all.String()[t.said:], "\n")
		if !ok {
			return len(p), nil
		}
		t.said += len(line) + 1
		t.say("%s", line)
	}
}

// until looks again and again until nothing is missing. An error of look is something that is missing, too: an API server that restarts
// must not end a tour.
func until(ctx context.Context, c local.Cluster, say local.Say, look func(ctx context.Context) (missing string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		missing, err := look(ctx)
		if err == nil && missing == "" {
			return nil
		}
		if err != nil {
			missing = err.Error()
		}
		say("waiting for %s", missing)
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", missing, ctx.Err())
		case <-c.Clock.After(pollEvery):
		}
	}
}

// gone deletes an object and waits until it is not there any more.
func gone(ctx context.Context, c local.Cluster, say local.Say, api client.Client, obj client.Object) error {
	what := fmt.Sprintf("%s to go", name(api, obj))
	if err := client.IgnoreNotFound(api.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationForeground))); err != nil {
		return fmt.Errorf("deleting %s: %w", name(api, obj), err)
	}
	return until(ctx, c, say, func(ctx context.Context) (string, error) {
		err := api.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if client.IgnoreNotFound(err) != nil || err == nil {
			return what, err
		}
		return "", nil
	})
}

// name is how a person calls an object: "package web/web".
func name(api client.Client, obj client.Object) string {
	kind := "object"
	if gvk, err := api.GroupVersionKindFor(obj); err == nil {
		kind = gvk.Kind
	}
	return kind + " " + strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/")
}
