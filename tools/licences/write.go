package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"time"
)

const rule = "--------------------------------------------------------------------------------"

// writeText writes every licence and notice, and says where the sources are.
func writeText(w io.Writer, modules []Module) error {
	var b strings.Builder
	b.WriteString("What this is made of besides our own work (see LICENSE and NOTICE), and under which licences. The source of each part is that of the\n" +
		"named version of its Go module, to be had by `go mod download MODULE@VERSION`; Go's own is at https://go.dev/dl. What is marked npm is a\n" +
		"package of npm: `npm pack PACKAGE@VERSION`.\n\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "  %s %s: %s%s\n", m.Path, m.Version, strings.Join(m.Licences, ", "), m.mark())
	}
	for _, m := range modules {
		for _, t := range m.Texts {
			fmt.Fprintf(&b, "\n%s\n%s %s: %s\n%s\n\n%s\n", rule, m.Path, m.Version, t.Name, rule, strings.TrimRight(string(t.Data), "\n"))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mark is what a list says of a module that is none of Go's.
func (m Module) mark() string {
	if m.Type == "" {
		return ""
	}
	return " (" + m.Type + ")"
}

// url is the module's address in an inventory.
func (m Module) url() string {
	switch m.Type {
	case npm:
		return "pkg:npm/" + strings.Replace(m.Path, "@", "%40", 1) + "@" + m.Version
	case deb:
		return "pkg:deb/debian/" + url.QueryEscape(m.Path) + "@" + url.QueryEscape(m.Version) + "?arch=" + m.Arch
	}
	return "pkg:golang/" + m.Path + "@" + m.Version
}

// writeList writes a line for each module.
func writeList(w io.Writer, modules []Module) error {
	for _, m := range modules {
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\n", m.Path, m.Version, strings.Join(m.Licences, ",")); err != nil {
			return err
		}
	}
	return nil
}

// spdx is a document of SPDX 2.3, as far as we say something.
type spdx struct {
	Version           string         `json:"spdxVersion"`
	DataLicence       string         `json:"dataLicense"`
	ID                string         `json:"SPDXID"`
	Name              string         `json:"name"`
	DocumentNamespace string         `json:"documentNamespace"`
	Creation          spdxCreation   `json:"creationInfo"`
	Packages          []spdxPackage  `json:"packages"`
	Relationships     []spdxRelation `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID               string    `json:"SPDXID"`
	Name             string    `json:"name"`
	Version          string    `json:"versionInfo"`
	Supplier         string    `json:"supplier"`
	DownloadLocation string    `json:"downloadLocation"`
	FilesAnalyzed    bool      `json:"filesAnalyzed"`
	Concluded        string    `json:"licenseConcluded"`
	Declared         string    `json:"licenseDeclared"`
	Comments         string    `json:"licenseComments,omitempty"`
	Copyright        string    `json:"copyrightText"`
	Refs             []spdxRef `json:"externalRefs,omitempty"`
}

type spdxRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelation struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

const unknown = "NOASSERTION"

var noID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// writeSPDX writes an inventory of a thing with a name and version. Its time is an argument, so that the same inventory has the same bytes.
func writeSPDX(w io.Writer, name, version string, created time.Time, modules []Module) error {
	root := spdxPackage{ID: "SPDXRef-root", Name: name, Version: version, Supplier: unknown, DownloadLocation: unknown, Concluded: "Apache-2.0", Declared: "Apache-2.0", Copyright: unknown}
	doc := spdx{
		Version: "SPDX-2.3", DataLicence: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name + "-" + version,
		Creation:      spdxCreation{Created: created.UTC().Format(time.RFC3339), Creators: []string{"Tool: tools/licences"}},
		Packages:      []spdxPackage{root},
		Relationships: []spdxRelation{{"SPDXRef-DOCUMENT", "DESCRIBES", root.ID}},
	}
	for _, m := range modules {
		p := root
		p.ID = "SPDXRef-" + noID.ReplaceAllString(m.Path+"-"+m.Version, "-")
		p.Name, p.Version = m.Path, m.Version
		p.Concluded = strings.Join(m.Licences, " AND ")
		if m.Type == deb {
			p.ID += "-" + m.Arch
			p.Supplier, p.Concluded, p.Comments = "Organization: Debian", unknown, fmt.Sprintf(copyrights, m.Path)
		}
		p.Declared = p.Concluded
		p.Refs = []spdxRef{{"PACKAGE-MANAGER", "purl", m.url()}}
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, spdxRelation{root.ID, "CONTAINS", p.ID})
	}
	body, err := json.Marshal(doc.Packages)
	if err != nil {
		return fmt.Errorf("encoding the inventory: %w", err)
	}
	// It must differ between inventories; nothing is served there.
	sum := sha256.Sum256(body)
	doc.DocumentNamespace = "https://spdx.org/spdxdocs/" + name + "-" + version + "-" + hex.EncodeToString(sum[:16])
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(doc)
}
