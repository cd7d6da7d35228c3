package render

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/config"
)

// maxNamed bounds how many errors are printed.
const maxNamed = 10

// definitions are our kinds as install defines them, by kind.
var definitions = sync.OnceValues(func() (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := config.CRDs(config.TechPreviewSet) // a preview is for what is to come, too
	if err != nil {
		return nil, err
	}
	byKind := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range crds {
		if crd.Spec.Group == hyperv1.GroupVersion.Group {
			byKind[crd.Spec.Names.Kind] = crd
		}
	}
	return byKind, nil
})

// admit does to an object what an API server with our definitions does: unknown fields go, defaults come, and the result is validated.
func admit(ctx context.Context, u *unstructured.Unstructured) error {
	all, err := definitions()
	if err != nil {
		return err
	}
	crd := all[u.GetKind()]
	if crd == nil {
		return fmt.Errorf("kind %s is not one of ours", u.GetKind())
	}
	var props *apiextensionsv1.JSONSchemaProps
	for _, v := range crd.Spec.Versions {
		if v.Name == u.GroupVersionKind().Version {
			props = v.Schema.OpenAPIV3Schema
		}
	}
	if props == nil {
		return fmt.Errorf("version %s is not served", u.GetAPIVersion())
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		return err
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return err
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return err
	}
	pruning.Prune(u.Object, structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, structural)
	defaulting.Default(u.Object, structural)
	errs := validation.ValidateCustomResource(nil, u.Object, validator)
	if len(errs) == 0 {
		rules := schemacel.NewValidator(structural, true, celconfig.PerCallLimit)
		errs, _ = rules.Validate(ctx, nil, structural, u.Object, nil, celconfig.RuntimeCELCostBudget)
	}
	return summary(errs)
}

func summary(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	var lines []string
	for _, e := range errs[:min(len(errs), maxNamed)] {
		lines = append(lines, e.Error())
	}
	if more := len(errs) - maxNamed; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("an API server would refuse it: %s; --no-defaults takes it as it is", strings.Join(lines, "; "))
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
