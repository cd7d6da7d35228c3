package translate

import (
	"errors"
	"strings"
)

// OpenAPI.
var (
	openAPIRoot = object(at("paths", 0, &node{keys: formOpenAPIPath, other: object(at("serverRelativeURL", 0, leaf(formOpenAPIURL)))}))
	openAPIDoc  = func() *node {
		deep := &node{}
		deep.other, deep.elem = deep, deep
		kind := object(at("group", 0, group))
		kind.elem = kind
		deep.with(at("$ref", 0, leaf(formReference)), at("operationId", 0, leaf(formOperation)), at("tags", 0, array(leaf(formOperation))),
			at("x-kubernetes-group-version-kind", 0, kind), at("enum", 0, nil), at("default", 0, nil), at("example", 0, nil), at("required", 0, nil),
			at("properties", 0, &node{other: deep})) // names of properties may be any of these
		schemas := &node{keys: formDefinition, other: deep}
		// Operations share parameters and responses, which refer to definitions; their own names have no groups in them.
		shared := &node{other: deep}
		return object(at("paths", 0, &node{keys: formURL, other: deep}), at("definitions", 0, schemas), at("parameters", 0, shared), at("responses", 0, shared),
			at("components", 0, object(at("schemas", 0, schemas))))
	}()
)

// message types of OpenAPI v2, as far as they lead to something that names a group: gnostic's openapi.v2.Document. They say the same as
// openAPIDoc. Linking gnostic's own types would cost every sidecar more memory than everything else in it.
type documentPart struct {
	leaf form // of a string here
	// fields by number.
	fields map[int]*documentPart
	// entry is the form of field 1, the name in an entry of a map. Entries whose name is another owner's may be hidden.
	entry form
	// extension: a NamedAny, whose value has text in YAML.
	extension bool
}

var document = func() *documentPart {
	message := func(fields map[int]*documentPart) *documentPart { return &documentPart{fields: fields} }
	// named is an entry of a map.
	named := func(value *documentPart) *documentPart { return message(map[int]*documentPart{2: value}) }
	reference, operation, extension := &documentPart{leaf: formReference}, &documentPart{leaf: formOperation}, &documentPart{extension: true}

	schema := &documentPart{}
	schema.fields = map[int]*documentPart{
		1: reference, 21: message(map[int]*documentPart{1: schema}), 23: message(map[int]*documentPart{1: schema}), 24: schema,
		25: message(map[int]*documentPart{1: named(schema)}), 31: extension,
	}
	refers := message(map[int]*documentPart{1: reference}) // JsonReference
	parameter := message(map[int]*documentPart{1: message(map[int]*documentPart{5: schema, 6: extension})})
	response := message(map[int]*documentPart{2: message(map[int]*documentPart{1: schema}), 5: extension})
	parameters := message(map[int]*documentPart{1: parameter, 2: refers})
	responses := message(map[int]*documentPart{1: named(message(map[int]*documentPart{1: response, 2: refers})), 2: extension})
	verb := message(map[int]*documentPart{1: operation, 5: operation, 8: parameters, 9: responses, 13: extension})
	item := message(map[int]*documentPart{1: reference, 2: verb, 3: verb, 4: verb, 5: verb, 6: verb, 7: verb, 8: verb, 9: parameters, 10: extension})
	return message(map[int]*documentPart{
		8:  message(map[int]*documentPart{2: {entry: formURL, fields: map[int]*documentPart{2: item}}}),
		9:  message(map[int]*documentPart{1: {entry: formDefinition, fields: map[int]*documentPart{2: schema}}}),
		10: message(map[int]*documentPart{1: named(parameter)}),
		11: message(map[int]*documentPart{1: named(response)}),
	})
}()

// OpenAPIProtobuf translates an OpenAPI v2 document in protobuf and appends it to dst. The Plan is that of the same document in JSON.
func OpenAPIProtobuf(p Plan, dst, src []byte) ([]byte, error) {
	return document.translate(p.hide, dst, src, 0)
}

// errDropped of an edit makes message leave out the field.
var errDropped = errors.New("field is dropped")

func (d *documentPart) translate(hide bool, dst, src []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return dst, ErrTooDeep
	}
	if d.extension {
		return extension(dst, src)
	}
	return message(dst, src, func(num int, dst, value []byte) ([]byte, bool, error) {
		if num == 1 && d.entry != formNone {
			out, changed, _ := d.entry.apply(dst, value)
			return out, changed, nil
		}
		part := d.fields[num]
		switch {
		case part == nil:
			return dst, false, nil
		case part.leaf != formNone:
			if len(value) > maxName {
				return dst, false, nil
			}
			out, changed, _ := part.leaf.apply(dst, value)
			return out, changed, nil
		case part.entry != formNone && hide:
			name, err := stringField(value, 1)
			if err != nil {
				return dst, false, err
			}
			if _, _, theirs := part.entry.apply(nil, []byte(name)); theirs {
				return dst, false, errDropped
			}
		}
		out, err := part.translate(hide, dst, value, depth+1)
		return out, true, err
	})
}

// extension translates a NamedAny{name = 1, value = 2{yaml = 2}}, if it is about groups.
func extension(dst, src []byte) ([]byte, error) {
	name, err := stringField(src, 1)
	if err != nil {
		return dst, err
	}
	return message(dst, src, func(num int, dst, value []byte) ([]byte, bool, error) {
		if num != 2 || name != "x-kubernetes-group-version-kind" {
			return dst, false, nil
		}
		out, err := message(dst, value, func(num int, dst, value []byte) ([]byte, bool, error) {
			if num != 2 || len(value) > maxSentence {
				return dst, false, nil
			}
			return append(dst, kindsYAML(string(value))...), true, nil
		})
		return out, true, err
	})
}

// kindsYAML renames the groups in the YAML of one or several kinds, which the API server writes a field a line: "- group: x".
func kindsYAML(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		at := strings.Index(line, "group: ")
		if at < 0 || strings.Trim(line[:at], " -") != "" {
			out.WriteString(line)
			continue
		}
		at += len("group: ")
		value := strings.TrimRight(line[at:], "\n")
		bare := strings.Trim(value, `"'`)
		out.WriteString(line[:at] + strings.Replace(value, bare, Group(bare), 1) + line[at+len(value):])
	}
	return out.String()
}

// IsOpenAPIProtobuf tells whether a media type is that of OpenAPI v2 in protobuf. Clients spell it with an @, which a media type can't have.
func IsOpenAPIProtobuf(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	media = strings.TrimSpace(media)
	return media == "application/com.github.proto-openapi.spec.v2@v1.0+protobuf" || media == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
}
