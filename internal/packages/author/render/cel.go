package render

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
)

const (
	// maxExpression bounds the length of an expression, in bytes.
	maxExpression = 16 << 10
	// maxCost bounds what an expression may do; the API server gives a rule of a CustomResourceDefinition the same.
	maxCost = 1_000_000
	// maxEvaluation bounds how long it may take.
	maxEvaluation = 2 * time.Second
	// interruptEvery is how many iterations go by between two looks at the time.
	interruptEvery = 1000
)

var errNotBool = errors.New("invalid return type: an expression must give a bool")

// variables that expressions have besides cond. package is a reserved word; see words.
var variables = []string{"__package__", "config", "images", "dependencies", "environment"}

var celEnv = sync.OnceValues(func() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.Variable("cond", cel.MapType(cel.StringType, cel.BoolType)),
		ext.Strings(ext.StringsVersion(0)), library.URLs(), library.Regex(), library.Lists(), cel.HomogeneousAggregateLiterals(), cel.DefaultUTCTimeZone(true),
	}
	for _, name := range variables {
		options = append(options, cel.Variable(name, cel.MapType(cel.StringType, cel.DynType)))
	}
	return cel.NewEnv(options...)
})

// expressions evaluates CEL in one context.
type expressions struct {
	vars map[string]any
	cond map[string]bool
}

// newExpressions evaluates the named conditions. They can't refer to each other.
func newExpressions(ctx context.Context, generic map[string]any, conditions []manifests.PackageManifestNamedCondition) (*expressions, error) {
	e := &expressions{vars: map[string]any{"__package__": generic["package"]}, cond: map[string]bool{}}
	for _, name := range variables[1:] {
		e.vars[name] = generic[name]
	}
	e.vars["cond"] = map[string]bool{}
	for i, c := range conditions {
		value, err := e.eval(ctx, c.Expression)
		if err != nil {
			return nil, fmt.Errorf("spec.filter.conditions[%d] %q: %w", i, c.Name, err)
		}
		e.cond[c.Name] = value
	}
	e.vars["cond"] = e.cond
	return e, nil
}

func (e *expressions) eval(ctx context.Context, expression string) (bool, error) {
	if len(expression) > maxExpression {
		return false, fmt.Errorf("expression longer than %d bytes", maxExpression)
	}
	env, err := celEnv()
	if err != nil {
		return false, fmt.Errorf("setting up CEL: %w", err)
	}
	ast, issues := env.Compile(words(expression))
	if issues.Err() != nil {
		return false, fmt.Errorf("compiling expression: %w", issues.Err())
	}
	if t := ast.OutputType(); t != cel.BoolType && t != cel.DynType {
		return false, errNotBool
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost), cel.CostTracking(&library.CostEstimator{}), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return false, fmt.Errorf("compiling expression: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, maxEvaluation)
	defer cancel()
	out, _, err := program.ContextEval(ctx, e.vars)
	if err != nil {
		return false, fmt.Errorf("evaluating expression: %w", err)
	}
	value, ok := out.Value().(bool)
	if !ok {
		return false, errNotBool
	}
	return value, nil
}

// words makes the word package, which the language reserves, a name where it starts a path outside of quotes.
func words(expression string) string {
	const word = "package"
	if !strings.Contains(expression, word) {
		return expression
	}
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(expression); i++ {
		c := expression[i]
		switch {
		case quote != 0 && c == '\\' && i+1 < len(expression):
			out.WriteByte(c)
			i++
			c = expression[i]
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && strings.HasPrefix(expression[i:], word) && startsPath(expression[:i]) && !isWord(expression, i+len(word)):
			out.WriteString("__package__")
			i += len(word) - 1
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}

func isWord(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return false
	}
	c := s[i]
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// startsPath tells whether a name behind this begins a path: it's neither part of a longer word nor a field.
func startsPath(before string) bool {
	if isWord(before, len(before)-1) {
		return false
	}
	return !strings.HasSuffix(strings.TrimRight(before, " \t\n"), ".")
}
