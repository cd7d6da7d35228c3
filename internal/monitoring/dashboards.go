package monitoring

import (
	"encoding/json"
	"fmt"
)

// Dashboard is one of Grafana, as code. JSON has it as Grafana reads it.
type Dashboard struct {
	// UID is what Grafana knows it by: links stay when the title changes. At most 40 letters, digits and dashes.
	UID, Title, Description string
	Variables               []Variable
	Rows                    []Row
}

// Variable is a choice at the head of a dashboard.
type Variable struct {
	Name, Label string
	// Query is in Grafana's words for Prometheus, label_values(…). The query within must have a result for the dashboard to be of use.
	Query string
	// Hidden: it follows from others.
	Hidden bool
}

// Row is a group of panels under a heading.
type Row struct {
	Title  string
	Panels []Panel
}

// Kinds of panels.
const (
	Stat   = "stat"       // one number
	Series = "timeseries" // lines
	Table  = "table"      // the newest values
)

// Panel shows queries.
type Panel struct {
	Title string
	// Description says what a person should make of it.
	Description string
	Kind        string
	// Unit is Grafana's: short, s, bytes, percentunit, reqps, ops, dateTimeFromNow.
	Unit    string
	Queries []Query
	// Bad is from which value on a Stat is red; 0: it has no colour.
	Bad float64
}

// Query is one of Prometheus. An operator with two replicas tells everything twice, so numbers of objects are taken by max, not by sum.
type Query struct {
	Expr, Legend string
}

// Dashboards are all of them, by the name of their file without .json.
func Dashboards() map[string]Dashboard {
	return map[string]Dashboard{"fleet": fleet(), "hosted-cluster": hostedCluster(), "rollout": rollout()}
}

// Widths and heights are in Grafana's units: 24 to a line.
const (
	lineWidth   = 24
	statWidth   = 4
	statHeight  = 4
	chartWidth  = 8
	chartHeight = 8
)

// source is the variable that says which Prometheus is asked.
const source = "datasource"

// JSON is the dashboard as Grafana imports it, indented, with a line feed at its end. It is the same each time.
func (d Dashboard) JSON() ([]byte, error) {
	raw, err := json.MarshalIndent(d.model(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding dashboard %s: %w", d.UID, err)
	}
	return append(raw, '\n'), nil
}

func (d Dashboard) model() map[string]any {
	variables := []any{map[string]any{"name": source, "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}}
	for _, v := range d.Variables {
		hide := 0
		if v.Hidden {
			hide = 2
		}
		variables = append(variables, map[string]any{
			"name": v.Name, "label": v.Label, "type": "query", "query": v.Query, "definition": v.Query, "datasource": prometheus(),
			"refresh": 2, "sort": 1, "hide": hide, "includeAll": false, "multi": false,
		})
	}
	return map[string]any{
		"uid": d.UID, "title": d.Title, "description": d.Description, "tags": []any{"hypershift"}, "schemaVersion": 39, "version": 1, "editable": true,
		"refresh": "1m", "time": map[string]any{"from": "now-6h", "to": "now"}, "timezone": "browser", "graphTooltip": 1,
		"templating": map[string]any{"list": variables}, "panels": d.panels(),
	}
}

// panels are laid out line by line, each row under its heading.
func (d Dashboard) panels() []any {
	var out []any
	id, y := 0, 0
	add := func(panel map[string]any, x, w, h int) {
		id++
		panel["id"], panel["gridPos"] = id, map[string]any{"x": x, "y": y, "w": w, "h": h}
		out = append(out, panel)
	}
	for _, row := range d.Rows {
		add(map[string]any{"type": "row", "title": row.Title, "collapsed": false, "panels": []any{}}, 0, lineWidth, 1)
		y++
		x, line := 0, 0
		for _, p := range row.Panels {
			w, h := chartWidth, chartHeight
			if p.Kind == Stat {
				w, h = statWidth, statHeight
			}
			if x+w > lineWidth || line != 0 && line != h {
				x, y = 0, y+line
			}
			line = h
			add(p.model(), x, w, h)
			x += w
		}
		y += line
	}
	return out
}

func (p Panel) model() map[string]any {
	var targets []any
	for i, q := range p.Queries {
		target := map[string]any{"refId": string(rune('A' + i)), "expr": q.Expr, "legendFormat": q.Legend, "datasource": prometheus()}
		if p.Kind != Series {
			target["instant"], target["range"] = true, false
		}
		if p.Kind == Table {
			target["format"] = "table"
		}
		targets = append(targets, target)
	}
	defaults := map[string]any{"unit": p.Unit}
	if p.Kind == Stat && p.Bad != 0 {
		defaults["color"] = map[string]any{"mode": "thresholds"}
		defaults["thresholds"] = map[string]any{"mode": "absolute", "steps": []any{
			map[string]any{"color": "green", "value": nil}, map[string]any{"color": "red", "value": p.Bad},
		}}
	}
	model := map[string]any{
		"type": p.Kind, "title": p.Title, "description": p.Description, "datasource": prometheus(), "targets": targets,
		"fieldConfig": map[string]any{"defaults": defaults, "overrides": []any{}},
	}
	if p.Kind == Stat {
		model["options"] = map[string]any{"reduceOptions": map[string]any{"calcs": []any{"lastNotNull"}}, "textMode": "value_and_name"}
	}
	return model
}

func prometheus() map[string]any {
	return map[string]any{"type": "prometheus", "uid": "${" + source + "}"}
}
