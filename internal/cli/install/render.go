package install

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/output"
)

// redacted stands for the value of a Secret that isn't rendered.
const redacted = "REDACTED"

// RenderOptions says how Render prints.
type RenderOptions struct {
	Format    output.Format // YAML documents unless output.JSON
	Template  bool          // one OpenShift Template with parameters instead of objects
	Sensitive bool          // print the data of Secrets; otherwise their keys only
}

// Render prints what Run would apply.
func Render(o Options, r RenderOptions, out io.Writer) error {
	if r.Template {
		return renderTemplate(o, r, out)
	}
	if err := o.Validate(); err != nil {
		return err
	}
	// Whoever asks for monitoring has it; nobody else should need its definitions.
	o.Monitoring.Objects = o.Monitoring.Objects || o.Monitoring.asked()
	objs, err := rendered(o, r)
	if err != nil {
		return err
	}
	return r.Format.Objects(out, objs)
}

func rendered(o Options, r RenderOptions) ([]map[string]any, error) {
	objs, err := Objects(o)
	if err != nil {
		return nil, err
	}
	scheme := connect.Scheme()
	result := make([]map[string]any, 0, len(objs))
	for _, obj := range objs {
		u, err := connect.Unstructured(scheme, obj)
		if err != nil {
			return nil, err
		}
		if !r.Sensitive {
			connect.RedactSecret(u, redacted)
		}
		result = append(result, u.Object)
	}
	return result, nil
}

// templateParameter is a parameter of an OpenShift Template.
type templateParameter struct {
	name, value, description string
	required                 bool
}

// renderTemplate prints an OpenShift Template. The names of the parameters are those that deployment pipelines know.
func renderTemplate(o Options, r RenderOptions, out io.Writer) error {
	if err := validateTemplate(o); err != nil {
		return err
	}
	image, tag := splitTag(o.Image)
	parameters := []templateParameter{
		{name: "OPERATOR_IMG", value: image, description: "Image of the operator, without tag.", required: true},
		{name: "IMAGE_TAG", value: tag, description: "Tag of the image.", required: true},
		{name: "NAMESPACE", value: o.Namespace, description: "Namespace of the operator.", required: true},
		{name: "OPERATOR_REPLICAS", value: fmt.Sprint(*replicas(o)), description: "Number of operator Pods."},
	}
	o.Namespace, o.Image, o.OpenShift = "${NAMESPACE}", "${OPERATOR_IMG}:${IMAGE_TAG}", true
	o.Monitoring.Objects = true // OpenShift has it
	objs, err := rendered(o, r)
	if err != nil {
		return err
	}
	var list []any
	for _, obj := range objs {
		if isOperator(obj, o.Namespace) {
			// ${{…}} is replaced by a number; ${…} would be a string.
			obj["spec"].(map[string]any)["replicas"] = "${{OPERATOR_REPLICAS}}"
		}
		list = append(list, obj)
	}
	var params []any
	for _, p := range parameters {
		param := map[string]any{"name": p.name, "description": p.description, "required": p.required}
		if p.value != "" {
			param["value"] = p.value
		}
		params = append(params, param)
	}
	return r.Format.Objects(out, []map[string]any{runtime.DeepCopyJSON(map[string]any{
		"apiVersion": "template.openshift.io/v1",
		"kind":       "Template",
		"metadata":   map[string]any{"name": "hypershift-operator-template"},
		"objects":    list,
		"parameters": params,
	})})
}

// validateTemplate is Validate for a template, which may leave the image open: it is a parameter.
func validateTemplate(o Options) error {
	if o.Image == "" {
		o.Image = "parameter"
	}
	return o.Validate()
}

// isOperator tells whether a rendered object is the operator's Deployment. Others have as many Pods as they need: a shared ingress with one could not be
// drained, and two external-dns would write the same records.
func isOperator(obj map[string]any, namespace string) bool {
	u := unstructured.Unstructured{Object: obj}
	return u.GetKind() == "Deployment" && u.GetNamespace() == namespace && u.GetName() == operatorName
}

// splitTag splits "registry:5000/repo:tag"; a reference without tag has the tag "latest".
func splitTag(image string) (repo, tag string) {
	slash := strings.LastIndex(image, "/")
	if colon := strings.LastIndex(image, ":"); colon > slash {
		return image[:colon], image[colon+1:]
	}
	return image, "latest"
}
