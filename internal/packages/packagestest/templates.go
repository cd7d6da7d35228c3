package packagestest

import (
	"fmt"
	"strings"

	"hcp.internal/api/packages/v1alpha1"
)

// HostileTemplate is an ObjectTemplate that must be refused, cheaply.
type HostileTemplate struct {
	// Name of the object, which says what it tries.
	Name string
	// Template is its text. Key is what it takes from its source, a ConfigMap with one value of 100 bytes.
	Template, Key string
	// Want is a part of the message that it is refused with.
	Want string
}

// TooSlow is what any of them may be refused with as well: on a busy machine the limit of time can be the first.
const TooSlow = "template takes longer than 2 s"

// doubling is a variable $x of 8·2ⁿ bytes.
func doubling(n int) string {
	return fmt.Sprintf(`{{ $x := "aaaaaaaa" }}{{ range until %d }}{{ $x = print $x $x }}{{ end }}`, n)
}

// HostileTemplates are all that we know of. Each was fatal for a process with text/template and Sprig as they are: memory without end, a stack that
// overflows, or hours in one function.
func HostileTemplates() []HostileTemplate {
	const big = `{{ $x := repeat 1000000 "a" }}`
	many := func(n int, text string) string { return strings.Repeat(text, n) }
	out := []HostileTemplate{
		// Values that contain themselves.
		{Name: "cycle-dict", Template: `{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ $d }}`, Want: "nested deeper"},
		{Name: "cycle-two", Template: `{{ $a := dict }}{{ $b := dict "a" $a }}{{ $_ := set $a "b" $b }}{{ printf "%v" $a }}`, Want: "nested deeper"},
		{Name: "cycle-list", Template: `{{ $d := dict }}{{ $l := list $d }}{{ $_ := set $d "l" $l }}{{ toJson $l }}`, Want: "nested deeper"},
		{Name: "cycle-merge", Template: `{{ $d := dict "a" dict }}{{ $_ := merge $d.a $d }}{{ $_ = set $d.a "b" $d }}{{ $d | deepCopy }}`, Want: "nested deeper"},
		{Name: "cycle-config", Template: `{{ $_ := set .config "self" .config }}{{ toYAML .config }}`, Want: "nested deeper"},
		{Name: "cycle-root", Template: `{{ $_ := set . "self" . }}{{ . }}`, Want: "nested deeper"},
		{Name: "cycle-quoted", Template: `{{ $d := dict }}{{ range until 200 }}{{ $d = dict "a" $d }}{{ end }}{{ $d | quote }}`, Want: "nested deeper"},
		// Values that double.
		{Name: "doubling-printf", Template: `{{ $x := "aaaaaaaa" }}{{ range until 36 }}{{ $x = printf "%s%s" $x $x }}{{ end }}`, Want: "larger than 4 MiB"},
		{Name: "doubling-print", Template: doubling(36), Want: "larger than 4 MiB"},
		{Name: "doubling-cat", Template: `{{ $x := "aaaaaaaa" }}{{ range until 36 }}{{ $x = cat $x $x }}{{ end }}`, Want: "larger than 4 MiB"},
		{Name: "doubling-list", Template: `{{ $x := list 1 }}{{ range until 40 }}{{ $x = list $x $x }}{{ end }}{{ $x }}`, Want: "larger than 4 MiB"},
		{Name: "doubling-concat", Template: `{{ $x := list 1 }}{{ range until 40 }}{{ $x = concat $x $x }}{{ end }}{{ $x }}`, Want: "larger than 4 MiB"},
		{Name: "doubling-dict", Template: `{{ $x := dict }}{{ range until 40 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ toJson $x }}`, Want: "larger than 4 MiB"},
		{Name: "doubling-quote", Template: `{{ $x := "\"" }}{{ range until 40 }}{{ $x = quote $x }}{{ end }}{{ $x }}`, Want: "larger than 4 MiB"},
		// It gives nothing: on a fast machine the limit of size would be the first.
		{Name: "doubling-include", Template: `{{ define "x" }}{{ if gt . 0 }}{{ include "x" (sub . 1) }}{{ include "x" (sub . 1) }}{{ end }}{{ end }}{{ include "x" 40 }}`, Want: "takes longer"},
		{Name: "doubling-replace", Template: `{{ $x := "aa" }}{{ range until 40 }}{{ $x = replace "a" "aa" $x }}{{ end }}`, Want: "larger than 4 MiB"},
		{Name: "doubling-b64", Template: `{{ $x := "aaaaaaaa" }}{{ range until 100 }}{{ $x = b64enc $x }}{{ end }}`, Want: "larger than 4 MiB"},
		{Name: "doubling-html", Template: `{{ $x := "<" }}{{ range until 100 }}{{ $x = html $x }}{{ end }}`, Want: ""},
		// One call that makes far more than it is given.
		{Name: "grow-repeat", Template: `{{ repeat 2000000000 "aaaaaaaa" }}`, Want: "more than"},
		{Name: "grow-repeat-overflow", Template: `{{ repeat 4611686018427387904 "aaaaaaaa" }}`, Want: "more than"},
		{Name: "grow-until", Template: `{{ until 100000000000 }}`, Want: "more than"},
		{Name: "grow-until-negative", Template: `{{ until -100000000000 }}`, Want: "more than"},
		{Name: "grow-untilstep", Template: `{{ untilStep -9223372036854775807 9223372036854775807 1 }}`, Want: "more than"},
		{Name: "grow-untilstep-down", Template: `{{ untilStep 9223372036854775807 -9223372036854775807 -1 }}`, Want: "more than"},
		{Name: "grow-seq", Template: `{{ seq 0 1 1000000000 }}`, Want: "more than"},
		{Name: "grow-seq-overflow", Template: `{{ seq -9223372036854775807 9223372036854775807 }}`, Want: "above"},
		{Name: "grow-indent", Template: big + `{{ indent 1000 (replace "a" "\n" $x) }}`, Want: "larger than 4 MiB"},
		{Name: "grow-indent-wide", Template: `{{ indent 2000000000 "a" }}`, Want: "larger than 4 MiB"},
		{Name: "grow-printf-width", Template: `{{ printf "%2000000000d" 1 }}`, Want: "width"},
		{Name: "grow-printf-star", Template: `{{ printf "%*d" 2000000000 1 }}`, Want: "width"},
		{Name: "grow-printf-index", Template: big + `{{ printf (repeat 200000 "%[1]s") $x }}`, Want: "larger than 4 MiB"},
		{Name: "grow-printf-list", Template: `{{ printf "%999d" (until 200000) }}`, Want: "larger than 4 MiB"},
		{Name: "grow-join", Template: big + `{{ join $x (until 100000) }}`, Want: "larger than 4 MiB"},
		{Name: "grow-replace", Template: big + `{{ replace "a" $x $x }}`, Want: "larger than 4 MiB"},
		{Name: "grow-wrap", Template: big + `{{ wrapWith 1 $x $x }}`, Want: "larger than 4 MiB"},
		{Name: "grow-split", Template: `{{ split "" (repeat 1000000 "a") }}`, Want: "larger than 4 MiB"},
		{Name: "grow-splitlist", Template: `{{ splitList "" (repeat 1000000 "a") }}`, Want: "larger than 4 MiB"},
		{Name: "grow-json", Template: `{{ fromJson (print "[" (repeat 900000 "1,") "1]") }}`, Want: "more than"},
		{Name: "grow-yaml", Template: `{{ fromYAML (repeat 900000 "\n-") }}`, Want: "more than"},
		{Name: "grow-yaml-alias", Template: "{{ fromYAML `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]` }}", Want: "excessive aliasing"},
		{Name: "grow-json-depth", Template: `{{ fromJson (print (repeat 9000 "[") (repeat 9000 "]")) }}`, Want: "nested deeper"},
		{Name: "grow-regex-group", Template: big + `{{ regexReplaceAll "(a+)" $x (repeat 100000 "$1$1$1$1") }}`, Want: "larger than 4 MiB"},
		{Name: "grow-regex-empty", Template: big + `{{ regexFindAll "" $x -1 }}`, Want: "larger than 4 MiB"},
		{Name: "grow-version", Template: big + `{{ $v := (semver "1.2.3").SetMetadata $x }}{{ printf (repeat 1000 "%[1]s") $v }}`, Want: "SetMetadata"},
		{Name: "grow-semver", Template: big + `{{ semver (print "1.2.3-" $x) }}`, Want: "longer than"},
		// Much of little.
		{Name: "keep-lists", Template: many(2000, `{{ $y := until 200000 }}`) + many(2000, `{{ $y := until 200000 }}`), Want: "lists and maps"},
		{Name: "keep-texts", Template: big + many(5000, `{{ $y := upper $x }}`), Want: "together"},
		{Name: "keep-output", Template: big + many(100, `{{ $x }}`), Want: "more than 4 MiB"},
		{Name: "keep-output-text", Template: `{{ range until 100000 }}{{ repeat 1000 "a" }}{{ end }}`, Want: "more than 4 MiB"},
		{Name: "keep-keys", Template: `{{ $d := dict }}{{ range until 20000 }}{{ $_ := set $d (print .) 1 }}{{ end }}{{ keys ` + many(1000, "$d ") + `}}`, Want: ""},
		// Recursion, until the stack overflows.
		{Name: "stack-include", Template: `{{ define "x" }}{{ include "x" . }}{{ end }}{{ include "x" . }}`, Want: "recursion"},
		{Name: "stack-template", Template: `{{ define "x" }}{{ template "x" . }}{{ end }}{{ template "x" . }}`, Want: "recursion"},
		{Name: "stack-blocks", Template: `{{ define "x" }}` + many(20000, `{{ if 1 }}`) + `{{ include "x" . }}` + many(20000, `{{ end }}`) + `{{ end }}{{ include "x" . }}`, Want: "nested deeper"},
		{Name: "stack-else", Template: `{{ define "x" }}{{ if 0 }}` + many(20000, `{{ else if 0 }}`) + `{{ else }}{{ include "x" . }}{{ end }}{{ end }}{{ include "x" . }}`, Want: "nested deeper"},
		{Name: "stack-parentheses", Template: `{{ define "x" }}{{ ` + many(9000, "(") + `include "x" .` + many(9000, ")") + ` }}{{ end }}{{ include "x" . }}`, Want: "nested deeper"},
		{Name: "stack-deep-includes", Template: `{{ define "x" }}` + many(90, `{{ if 1 }}`) + `{{ include "x" . }}` + many(90, `{{ end }}`) + `{{ end }}{{ include "x" . }}`, Want: "recursion"},
		{Name: "stack-output", Template: many(15000, "{a: ") + many(15000, "}"), Want: ""},
		{Name: "stack-message", Template: `{{ define "x" }}{{ if gt . 0 }}{{ include "x" (sub . 1) }}{{ else }}{{ fail (repeat 1000000 "a") }}{{ end }}{{ end }}{{ include "x" 900 }}`, Want: "aaa"},
		// Time in loops, and in one call.
		{Name: "time-range", Template: `{{ range until 200000 }}{{ range until 200000 }}{{ end }}{{ end }}`, Want: "takes longer"},
		{Name: "time-range-number", Template: `{{ range 1000000000000 }}{{ end }}`, Want: "takes longer"},
		{Name: "time-flat", Template: `{{ $l := until 200000 }}` + many(20000, `{{ $y := toJson $l | len }}`), Want: ""},
		{Name: "time-uniq", Template: `{{ len (uniq (until 200000)) }}`, Want: "too many values"},
		{Name: "time-without", Template: `{{ $l := until 100000 }}{{ without $l ` + many(20000, "1 ") + `}}`, Want: "too many values"},
		{Name: "time-regex", Template: big + `{{ regexMatch "(a+a+)+b{900}" $x }}`, Want: "too large"},
		{Name: "time-regex-square", Template: `{{ len (regexFindAll "a(.*b)?" (repeat 200000 "a") -1) }}`, Want: ""},
		{Name: "time-regex-pattern", Template: `{{ regexMatch (repeat 100000 "(a{1000})") "a" }}`, Want: "longer than"},
		{Name: "time-regex-count", Template: `{{ regexMatch "((a{1000}){1000}){1000}" "a" | not | fail }}`, Want: ""},
		{Name: "time-decimal", Template: `{{ mulf ` + many(50000, "1.2345678901234567e-300 ") + `}}`, Want: "more than"},
		// What templates must not have at all.
		{Name: "reach-env", Template: `{{ env "HOME" }}`, Want: `"env" not defined`},
		{Name: "reach-expandenv", Template: `{{ expandenv "$HOME" }}`, Want: `"expandenv" not defined`},
		{Name: "reach-host", Template: `{{ getHostByName "localhost" }}`, Want: `"getHostByName" not defined`},
		{Name: "reach-key", Template: `{{ genPrivateKey "rsa" }}`, Want: `"genPrivateKey" not defined`},
		{Name: "reach-ca", Template: `{{ genCA "a" 1 }}`, Want: `"genCA" not defined`},
		{Name: "reach-bcrypt", Template: `{{ htpasswd "a" "b" }}`, Want: `"htpasswd" not defined`},
		{Name: "reach-derive", Template: `{{ derivePassword 1 "long" "a" "b" "c" }}`, Want: `"derivePassword" not defined`},
		{Name: "reach-files", Template: `{{ getFile "/etc/passwd" }}`, Want: `"getFile" not defined`},
		{Name: "reach-method", Template: `{{ .config.GetObjectKind }}`, Want: "GetObjectKind"},
		{Name: "reach-call", Template: `{{ call .config }}`, Want: "call"},
		// Panics.
		{Name: "panic-substr", Template: `{{ substr 5 2 "abc" }}{{ slice (list 1) 5 2 }}`, Want: ""},
		{Name: "panic-divide", Template: `{{ div 1 0 }}`, Want: "divide by zero"},
		{Name: "panic-chunk", Template: `{{ chunk 0 (list 1 2) }}`, Want: ""},
		{Name: "panic-nil", Template: `{{ first nil }}{{ toString nil | atoi | div 1 }}`, Want: ""},
		{Name: "panic-version", Template: `{{ (semver "1.2.3").Equal nil }}`, Want: ""},
		// What it gives is no object, or a bad one.
		{Name: "gives-nothing", Template: ` `, Want: ""},
		{Name: "gives-list", Template: `[a, b]`, Want: ""},
		{Name: "gives-aliases", Template: "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]", Want: "excessive aliasing"},
		{Name: "gives-values", Template: `[{{ repeat 900000 "1," }}1]`, Want: "more than"},
		// Keys.
		{Name: "key-union", Key: ".data" + many(3, "['a'"+many(79, ",'a'")+"]"), Want: "too many values"},
		{Name: "key-union-many", Key: ".metadata" + many(60, "['a','a']"), Want: "too many values"},
		{Name: "key-recursion", Key: "metadata..a..b..c", Want: "too many values"},
		{Name: "key-range", Key: "data range", Want: "range"},
		{Name: "key-end", Key: "data end", Want: "range"},
		{Name: "key-nothing", Key: "data.nope", Want: "nope is not found"},
		{Name: "key-broken", Key: "data[?(", Want: "unterminated"},
	}
	for i := range out {
		if out[i].Key == "" {
			out[i].Key = "data.value"
		}
		if out[i].Template == "" {
			out[i].Template = "{apiVersion: v1, kind: ConfigMap, metadata: {name: made}}"
		}
	}
	return out
}

// Spec is that of an ObjectTemplate which takes its value from ConfigMap "source".
func (h HostileTemplate) Spec(namespace string) v1alpha1.ObjectTemplateSpec {
	return v1alpha1.ObjectTemplateSpec{Template: h.Template, Sources: []v1alpha1.ObjectTemplateSource{{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "source",
		Items: []v1alpha1.ObjectTemplateSourceItem{{Key: h.Key, Destination: ".value"}},
	}}}
}
