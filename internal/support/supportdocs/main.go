// Command supportdocs writes docs/reference/support.md from internal/support: what is heeded, refused, and not heeded.
//
//	supportdocs FILE
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"hcp.internal/platform/internal/support"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: supportdocs FILE")
		os.Exit(2)
	}
	page := Page()
	if have, err := os.ReadFile(os.Args[1]); err == nil && bytes.Equal(have, page) {
		return // others may be building meanwhile
	}
	if err := os.WriteFile(os.Args[1], page, 0o644); err != nil { // a page that everybody may read
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const intro = `# What is heeded

<!-- Generated from internal/support by hack/generate.sh. -->

Nothing that you can write is ignored in silence. Each field, annotation, flag and kind is

- **heeded**: it does what the [API reference](api.md) says;
- **refused**: a new object that has it is not acted on, and its condition ValidConfiguration, SupportedHostedCluster or ValidReleaseImage says why. A hosted cluster that exists goes on, and is told;
- **not heeded**: nobody acts on it. While it is set, condition **AllFieldsHeeded** of the HostedCluster or NodePool is False and says what to do instead. (A default that the API server or a tool fills in is not told.)

What is not a platform's own is about releases of **Kubernetes** on the platforms **None** and **Local**; a column says what holds for payloads of OpenShift, about which there is more in [openshift](../openshift.md).

| | releases of Kubernetes | releases of OpenShift |
|---|---|---|
| platform AWS | fields of spec.platform.aws as below; machines need spec.platform.aws.ami | fields of spec.platform.aws as below |
| platforms Agent, Azure, GCP, IBMCloud, KubeVirt, OpenStack, PowerVS | fields of their own as below, see [platforms](../platforms.md); machines need an image that the NodePool names | fields of their own as below |
| platforms None, Local | as below | see [openshift](../openshift.md) |
| all other platforms | refused: SupportedHostedCluster is False | refused: SupportedHostedCluster is False |

A line holds for what lies below its field, too, unless another line says otherwise.
`

// Page is the whole page.
func Page() []byte {
	b := &strings.Builder{}
	b.WriteString(intro)
	b.WriteString("\n## How it is known\n\n| platform | ran | rendered, and compared | unproved |\n|---|---|---|---|\n")
	for _, p := range support.Proofs {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", p.Platform, p.Ran, p.Rendered, p.Unproved)
	}
	for _, t := range support.Tables() {
		fmt.Fprintf(b, "\n## Fields of %s\n\n| field | Local | None | OpenShift payloads | why, and what to do |\n|---|---|---|---|---|\n", t.Kind)
		entries := slices.Clone(t.Entries)
		for _, r := range t.Rules {
			entries = append(entries, r.Entry)
		}
		for _, e := range entries {
			payload, text := e.ForPayloads(), e.Text
			if payload.Text != text && payload.Text != "" {
				text = strings.TrimPrefix(text+"; for payloads: "+payload.Text, "; ")
			}
			fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", e.Path, e.On("Local"), e.On("None"), payload.Verdict, text)
		}
	}
	b.WriteString("\n## Annotations and labels\n\nA key of group `hypershift.openshift.io` that is not here is a mistake, and told.\n")
	for _, v := range []support.Verdict{support.Heeded, support.NotHeeded, support.Written} {
		fmt.Fprintf(b, "\n### %s\n\n| key | why |\n|---|---|\n", strings.ToUpper(string(v[:1]))+string(v[1:]))
		for _, e := range support.Annotations() {
			if e.Verdict != v {
				continue
			}
			text := e.Text
			if e.Payload == support.Heeded {
				text += "; OpenShift payloads heed it"
			} else if e.Payload != "" {
				text += "; for OpenShift payloads: " + e.PayloadText
			}
			fmt.Fprintf(b, "| `%s` | %s |\n", e.Path, text)
		}
	}
	b.WriteString("\n## Kinds\n\n| kind | group | | |\n|---|---|---|---|\n")
	for _, k := range support.Kinds {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", k.Kind, k.Group, k.Verdict, cmp.Or(k.Text, "see above"))
	}
	b.WriteString("\n## Flags\n\nA flag that is not in the list of its command does not exist. Those of a command hold for the commands below it, too.\n")
	for _, program := range support.Programs {
		fmt.Fprintf(b, "\n### %s\n\n| command | heeded | refused | not heeded |\n|---|---|---|---|\n", program.Name)
		for _, c := range program.Commands {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", c.Command, flags(c.Heeded), flags(c.Refused), flags(c.NotHeeded))
		}
	}
	return []byte(b.String())
}

func flags(list string) string {
	var out []string
	for _, f := range strings.Fields(list) {
		out = append(out, "`--"+f+"`")
	}
	return strings.Join(out, " ")
}
