package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

const (
	// maxSchemaDepth bounds how deep a schema may nest. The libraries recurse.
	maxSchemaDepth = 40
	// maxSchemaNodes bounds how many parts it may have.
	maxSchemaNodes = 10_000
	// maxConfig bounds the configuration of a package; an object of the API server has no more.
	maxConfig = 2 << 20
)

// Schema validates and defaults the configuration of packages. nil is that of a package without parameters.
type Schema struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *schemacel.Validator
}

var schemaPath = field.NewPath("spec", "config", "openAPIV3Schema")

// NewSchema compiles a schema, which must be one that a CustomResourceDefinition could have. props may be nil.
func NewSchema(ctx context.Context, props *apiextensionsv1.JSONSchemaProps) (*Schema, field.ErrorList) {
	if props == nil {
		return nil, nil
	}
	if err := boundedSchema(props); err != nil {
		return nil, field.ErrorList{field.Invalid(schemaPath, "", err.Error())}
	}
	switch {
	case props.Type == "":
		return nil, field.ErrorList{field.Required(schemaPath.Child("type"), "must be object at the root")}
	case props.Type != "object":
		return nil, field.ErrorList{field.Invalid(schemaPath.Child("type"), props.Type, "must be object at the root")}
	case props.Nullable:
		return nil, field.ErrorList{field.Forbidden(schemaPath.Child("nullable"), "nullable cannot be true at the root")}
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		return nil, field.ErrorList{field.Invalid(schemaPath, "", err.Error())}
	}
	if errs := asDefinition(ctx, internal); len(errs) > 0 {
		return nil, errs
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(schemaPath, "", err.Error())}
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(schemaPath, "", err.Error())}
	}
	return &Schema{structural: structural, validator: validator, rules: schemacel.NewValidator(structural, false, celconfig.PerCallLimit)}, nil
}

// Admit removes what the schema doesn't know from a configuration, fills in defaults and validates the result. Errors are reported below path.
func (s *Schema) Admit(ctx context.Context, raw []byte, path *field.Path) (map[string]any, field.ErrorList) {
	if s == nil {
		return map[string]any{}, nil
	}
	if len(raw) > maxConfig {
		return nil, field.ErrorList{field.TooLong(path, "", maxConfig)}
	}
	config := map[string]any{}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		if err := unmarshal(raw, &config); err != nil {
			return nil, field.ErrorList{field.Invalid(path, "", "must be an object: "+err.Error())}
		}
	}
	pruning.Prune(config, s.structural, false)
	defaulting.Default(config, s.structural)
	errs := validation.ValidateCustomResource(path, config, s.validator)
	if len(errs) == 0 && s.rules != nil {
		errs, _ = s.rules.Validate(ctx, path, s.structural, config, nil, celconfig.RuntimeCELCostBudget)
	}
	return config, errs
}

// unmarshal reads JSON as the API server does: whole numbers are int64.
func unmarshal(raw []byte, into *map[string]any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	out := map[string]any{}
	if err := decoder.Decode(&out); err != nil {
		return err
	}
	*into, _ = numbers(out).(map[string]any)
	return nil
}

func numbers(v any) any {
	switch t := v.(type) {
	case map[string]any:
		for k, each := range t {
			t[k] = numbers(each)
		}
	case []any:
		for i, each := range t {
			t[i] = numbers(each)
		}
	case json.Number:
		if i, err := t.Int64(); err == nil {
			return i
		}
		if f, err := t.Float64(); err == nil {
			return f
		}
		return t.String()
	}
	return v
}

// asDefinition lets the library check the schema as part of a CustomResourceDefinition, below a property, since the root of a definition has
// rules about metadata that are of no concern here.
func asDefinition(ctx context.Context, schema *apiextensions.JSONSchemaProps) field.ErrorList {
	const group, plural = "config.package-operator.run", "configs"
	root := &apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"config": *schema.DeepCopy()}}
	no := false
	definition := &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: group, Version: "v1", Scope: apiextensions.NamespaceScoped, PreserveUnknownFields: &no,
			Names:      apiextensions.CustomResourceDefinitionNames{Plural: plural, Singular: "config", Kind: "Config", ListKind: "ConfigList"},
			Versions:   []apiextensions.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}},
			Validation: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: root},
			Conversion: &apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter},
		},
		Status: apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}},
	}
	errs := crdvalidation.ValidateCustomResourceDefinition(ctx, definition)
	for _, e := range errs {
		e.Field = schemaField(e.Field)
	}
	return errs
}

// schemaField is the place in the manifest of one in asDefinition's definition.
func schemaField(path string) string {
	for _, prefix := range []string{"spec.validation.openAPIV3Schema", "spec.versions[0].schema.openAPIV3Schema"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			return schemaPath.String() + strings.TrimPrefix(rest, ".properties[config]")
		}
	}
	return path
}

// boundedSchema refuses what would take the libraries long, or their stack.
func boundedSchema(root *apiextensionsv1.JSONSchemaProps) error {
	raw, err := json.Marshal(root)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	depth, nodes := 0, 0
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil //nolint:nilerr // the end of what was just encoded
		}
		if nodes++; nodes > 10*maxSchemaNodes {
			return fmt.Errorf("more than %d parts", maxSchemaNodes)
		}
		if delim, ok := token.(json.Delim); ok {
			if delim == '{' || delim == '[' {
				depth++
			} else {
				depth--
			}
			if depth > 2*maxSchemaDepth {
				return errors.New("nested too deeply")
			}
		}
	}
}
