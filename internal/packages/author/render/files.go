package render

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/gobwas/glob"

	"hcp.internal/platform/internal/packages/author/gotemplate"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/author/violation"
)

// maxTime bounds one rendering.
const maxTime = 5 * time.Second

var errTime = fmt.Errorf("rendering takes longer than %s", maxTime)

// templates executes the templates among files and returns all files, with what templates gave in their place.
func templates(ctx context.Context, p *load.Package, generic map[string]any, e *expressions) (load.Files, error) {
	functions := template.FuncMap{
		"getFile": func(name string) (string, error) {
			data, ok := p.Files[name]
			if !ok {
				return "", errors.New("file not found")
			}
			return string(data), nil
		},
		"getFileGlob": func(pattern string) (map[string]any, error) { return filesMatching(p.Files, pattern) },
		"cel":         func(expression string) (bool, error) { return e.eval(ctx, expression) },
	}
	set := gotemplate.NewSet(ctx, functions)
	out, total := load.Files{}, int64(0)
	var names []string
	for _, name := range p.Files.Paths() {
		if !load.IsTemplate(name) {
			if err := out.Add(name, p.Files[name], &total); err != nil {
				return nil, err
			}
			continue
		}
		names = append(names, name)
		if err := set.Parse(name, string(p.Files[name])); err != nil {
			return nil, fmt.Errorf("parsing template from %s: %w", name, err)
		}
	}
	if err := set.Seal(); err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := set.Execute(name, generic)
		if err != nil {
			// The context may hold secrets, so it isn't part of the message.
			return nil, fmt.Errorf("executing template from %s: %w", name, err)
		}
		target := strings.TrimSuffix(name, load.TemplateExt)
		if _, taken := out[target]; taken {
			return nil, &violation.Error{Reason: violation.InvalidFile, Path: name, Component: p.Component, Details: "there is a file " + target + ", too"}
		}
		if err := out.Add(target, data, &total); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// maxPattern bounds patterns of getFileGlob. They are gobwas', and those of spec.filter.paths doublestar's, as published packages are written for: "**/a.yaml"
// selects a file at the top with the second only, and "a**" one in a folder with the first only, so that a single library would change what they install.
const maxPattern = 1024

func filesMatching(files load.Files, pattern string) (map[string]any, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("pattern longer than %d bytes", maxPattern)
	}
	match, err := glob.Compile(pattern, '/')
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	out := map[string]any{}
	for name, data := range files {
		if match.Match(name) {
			out[name] = string(data)
		}
	}
	return out, nil
}

// keptPaths are the files that no path filter leaves out.
func keptPaths(ctx context.Context, p *load.Package, files load.Files, e *expressions) (load.Files, error) {
	var excluded []string
	for i, filter := range p.Manifest.Spec.Filter.Paths {
		keep, err := e.eval(ctx, filter.Expression)
		if err != nil {
			return nil, fmt.Errorf("spec.filter.paths[%d] %q: %w", i, filter.Glob, err)
		}
		if !keep {
			excluded = append(excluded, filter.Glob)
		}
	}
	out := load.Files{}
	for name, data := range files {
		drop := false
		for _, pattern := range excluded {
			if drop = doublestar.MatchUnvalidated(pattern, name); drop {
				break
			}
		}
		if !drop {
			out[name] = data
		}
	}
	return out, nil
}
