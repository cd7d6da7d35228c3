package probe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/cel/library"

	"hcp.internal/api/packages/v1alpha1"
)

// ErrNotBool is what Parse returns, wrapped, for a rule that does not give a bool.
var ErrNotBool = errors.New("cel expression must evaluate to a bool")

const (
	// maxRule bounds the length of a rule, in bytes. Those of CustomResourceDefinitions have the same bound in practice.
	maxRule = 16 << 10
	// maxCost bounds how much a rule may do with an object. A walk through a list of 5,000 items costs some 100,000; all of it takes 0.1 s on an idle
	// machine.
	maxCost = 200_000
	// maxTime bounds how long it may take as well. It does not end every loop, since macros such as all() go on after an error.
	maxTime = 2 * time.Second
	// interruptEvery is how many iterations of a comprehension go by between two looks at the time.
	interruptEvery = 1000
	// maxPrograms bounds the cache of compiled rules; an entry is some 10 KiB.
	maxPrograms = 256
)

// environment is built once: it takes milliseconds, and holds no state.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(cel.Variable("self", cel.DynType), ext.Strings(ext.StringsVersion(0)), library.URLs(), library.Regex(), library.Lists(),
		cel.HomogeneousAggregateLiterals(), cel.DefaultUTCTimeZone(true))
})

// programs caches compiled rules: hundreds of revisions share a handful.
var programs = struct {
	sync.Mutex
	byRule map[string]cel.Program
}{byRule: map[string]cel.Program{}}

func rule(spec v1alpha1.ProbeCELSpec) (check, error) {
	program, err := compile(spec.Rule)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, obj *unstructured.Unstructured) string {
		ctx, cancel := context.WithTimeout(ctx, maxTime)
		defer cancel()
		out, _, err := program.ContextEval(ctx, map[string]any{"self": obj.Object})
		if err != nil {
			return fmt.Sprintf("CEL program failed: %v", err)
		}
		if out.Value() != true {
			return spec.Message
		}
		return ""
	}, nil
}

func compile(text string) (cel.Program, error) {
	if len(text) > maxRule {
		return nil, fmt.Errorf("cel.rule: longer than %d bytes", maxRule)
	}
	programs.Lock()
	defer programs.Unlock()
	if p, ok := programs.byRule[text]; ok {
		return p, nil
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("cel.rule: %w", issues.Err())
	}
	if ast.OutputType() != cel.BoolType {
		return nil, ErrNotBool
	}
	p, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost), cel.CostTracking(&library.CostEstimator{}),
		cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return nil, fmt.Errorf("cel.rule: %w", err)
	}
	if len(programs.byRule) >= maxPrograms {
		clear(programs.byRule) // all are compiled again when they are needed
	}
	programs.byRule[text] = p
	return p, nil
}
