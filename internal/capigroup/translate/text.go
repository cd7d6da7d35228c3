package translate

import (
	"bytes"
	"strings"
)

// appendText renames the groups that a message of the API server names: whole tokens of a group, or of a resource with its group, at the
// start or after a space, quote, parenthesis, slash or equals sign. A token before a slash is a group only if a version follows;
// else it is the domain of a label or annotation.
//
// named says that the message is about objects which are named by a group, whatever the kind is called: any word may
// be before that group then.
func appendText(dst, s []byte, named bool) (out []byte, changed, theirs bool) {
	out = dst
	done, escape := 0, -1
	for i := 0; i < len(s); {
		if s[i] == '\\' && i+1 < len(s) { // of a JSON string: \" and \n are as good as a quote and a space
			i += 2
			escape = i
			continue
		}
		if !isToken(s[i]) {
			i++
			continue
		}
		end := i + 1
		for end < len(s) && isToken(s[end]) {
			end++
		}
		start, stop := i, end
		i = end
		for stop > start && (s[stop-1] == '.' || s[stop-1] == '-') {
			stop-- // the end of a sentence
		}
		if start > 0 && start != escape && !strings.ContainsRune(" \t\n\"'`(/=", rune(s[start-1])) {
			continue
		}
		if stop < len(s) && (s[stop] == '/' && !versionAt(s[stop+1:]) || s[stop] == '_') {
			continue
		}
		kind := false
		if dot := bytes.IndexByte(s[start:stop], '.'); dot > 0 && isUpper(s[start]) { // Machine.cluster.x-k8s.io "x" is invalid
			start, kind = start+dot+1, true
		}
		keep, repl := swap(s[start:stop])
		if repl == "" || !named && !namesGroup(s[start:start+keep], kind) {
			continue
		}
		out = append(out, s[done:start+keep]...)
		out = append(out, repl...)
		done, changed = stop, true
	}
	if !changed {
		return dst, false, false
	}
	return append(out, s[done:]...), true, false
}

// namesGroup tells whether what is before the suffix in a text makes it a group that is known, alone or after a plural or a
// kind. Finalizers and hooks look alike (machine.cluster.x-k8s.io), and texts quote them.
func namesGroup(before []byte, kind bool) bool {
	labels := strings.Split(strings.TrimSuffix(string(before), "."), ".")
	last := labels[len(labels)-1]
	switch {
	case kind:
		return len(labels) == 1 && (last == "" || groupPrefixes[last])
	case len(labels) == 1:
		return last == "" || groupPrefixes[last] || plurals[last]
	case len(labels) == 2:
		return groupPrefixes[last] && strings.HasSuffix(labels[0], "s")
	}
	return false
}

// groupPrefixes are the groups below Standard that have kinds.
var groupPrefixes = map[string]bool{"infrastructure": true, "bootstrap": true, "controlplane": true, "addons": true, "ipam": true, "runtime": true, "exp": true}

// plurals are the kinds of Standard itself.
var plurals = map[string]bool{"clusters": true, "clusterclasses": true, "machines": true, "machinesets": true, "machinedeployments": true, "machinepools": true,
	"machinehealthchecks": true, "machinedrainrules": true}

func isToken(c byte) bool { return isLabel(c) || isUpper(c) || c == '.' }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// versionAt tells whether s begins with a version, as a word.
func versionAt(s []byte) bool {
	n := 0
	for n < len(s) && isLabel(s[n]) {
		n++
	}
	return isVersion(s[:n])
}

// Warning renames groups in the value of a Warning header (RFC 7234): code, agent and a quoted text. One that isn't of this
// form is returned as it is.
func Warning(header string) string {
	// code SP agent SP quoted-string [SP quoted-date]; the agent may be a quoted string nowhere in Kubernetes.
	code, rest, ok := strings.Cut(header, " ")
	agent, rest, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 || len(code) != 3 || !strings.HasPrefix(rest, `"`) {
		return header
	}
	var text []byte
	i := 1
	for ; i < len(rest) && rest[i] != '"'; i++ {
		if rest[i] == '\\' {
			i++
			if i == len(rest) {
				return header
			}
		}
		text = append(text, rest[i])
	}
	if i >= len(rest) {
		return header
	}
	out, changed, _ := appendText(nil, text, false)
	if !changed {
		return header
	}
	quoted := make([]byte, 0, len(out)+2)
	for _, c := range out {
		if c == '"' || c == '\\' {
			quoted = append(quoted, '\\')
		}
		quoted = append(quoted, c)
	}
	return code + " " + agent + ` "` + string(quoted) + rest[i:]
}

// category is what the private kinds are listed under, instead of Cluster API's category: `kubectl get cluster-api` shows a
// platform administrator only what is the platform's.
const (
	standardCategory = "cluster-api"
	privateCategory  = "hypershift-capi"
	shortPrefix      = "h"
)

// ShortName is the short name or category that a private kind has for a standard kind's, and the other way round. Names that
// no mirrored kind has are returned as they are.
func ShortName(s string) string { return formShort.text(s) }

func appendShort(dst, s []byte) (out []byte, changed, theirs bool) {
	switch {
	case string(s) == standardCategory:
		return append(dst, privateCategory...), true, false
	case string(s) == privateCategory:
		return append(dst, standardCategory...), true, false
	case shortNames[string(s)]:
		return append(append(dst, shortPrefix...), s...), true, false
	case len(s) > 1 && string(s[:1]) == shortPrefix && shortNames[string(s[1:])]:
		return append(dst, s[1:]...), true, false
	}
	return dst, false, false
}

// shortNames are those of Cluster API's own kinds and of the providers'. None is another one with the prefix.
var shortNames = map[string]bool{
	"cl": true, "cc": true, "ma": true, "ms": true, "md": true, "mp": true, "mhc": true, "mhcs": true, "ext": true,
	"awsc": true, "awsct": true, "awsm": true, "awsmt": true, "awsmp": true, "awsci": true, "awsri": true, "awssi": true,
	"gcpct": true, "gcpmt": true, "kct": true, "osc": true, "osct": true, "osm": true, "osmt": true, "oss": true, "osci": true,
	"ibmpowervsct": true, "ibmvpcct": true, "agentmt": true, "lc": true, "lm": true, "lmt": true,
}

const (
	standardDefinitions = "io.x-k8s.cluster."
	privateDefinitions  = "io.openshift.hypershift.cluster."
)

// appendDefinition renames "io.x-k8s.cluster.…": groups are reversed in the names of OpenAPI definitions.
func appendDefinition(dst, s []byte, reference bool) (out []byte, changed, theirs bool) {
	at := 0
	if reference {
		at = bytes.LastIndexByte(s, '/') + 1
	}
	for _, pair := range [][2]string{{standardDefinitions, privateDefinitions}, {privateDefinitions, standardDefinitions}} {
		if bytes.HasPrefix(s[at:], []byte(pair[0])) {
			dst = append(append(dst, s[:at]...), pair[1]...)
			return append(dst, s[at+len(pair[0]):]...), true, pair[1] == privateDefinitions
		}
	}
	return dst, false, false
}

const (
	standardCamel = "lusterXK8sIo"
	privateCamel  = "lusterHypershiftOpenshiftIo"
)

// appendOperation renames listClusterXK8sIoV1beta1… and the tag clusterXK8sIo_v1beta1. Hostedcluster… has a small c inside a word.
func appendOperation(dst, s []byte) (out []byte, changed, theirs bool) {
	for _, pair := range [][2]string{{standardCamel, privateCamel}, {privateCamel, standardCamel}} {
		at := bytes.Index(s, []byte(pair[0]))
		if at < 1 || s[at-1] != 'C' && (s[at-1] != 'c' || at != 1) {
			continue
		}
		end := at + len(pair[0])
		if end < len(s) && s[end] != 'V' && s[end] != '_' {
			continue
		}
		dst = append(append(dst, s[:at]...), pair[1]...)
		return append(dst, s[end:]...), true, pair[1] == privateCamel
	}
	return dst, false, false
}
