package aws

import (
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hcp.internal/platform/internal/aws/remedy"
)

// instanceReady is the provider's condition of an AWSMachine. What it says of a refusal is there alone: the Machine repeats the reason, and a count of steps.
const instanceReady = "InstanceReady"

var (
	// apiError is how errors of AWS's SDK end. Before it are numbers of requests, which differ each time, and after it is a text that may be long.
	apiError = regexp.MustCompile(`api error ([A-Za-z0-9._]{1,80})`)
	// operation is the service and the call.
	operation = regexp.MustCompile(`operation error ([A-Za-z0-9 ]{1,40}): ([A-Za-z]{1,60})`)
)

// ExplainMachine implements platform.MachineExplainer: what AWS answered to the provider becomes the call, the code and what to do. Other messages stay.
func (Platform) ExplainMachine(infra *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(infra.Object, "status", "conditions")
	for _, item := range list {
		c, ok := item.(map[string]any)
		if !ok || c["type"] != instanceReady || c["status"] == "True" {
			continue
		}
		message, _ := c["message"].(string)
		return explain(message)
	}
	return ""
}

func explain(message string) string {
	code := apiError.FindStringSubmatch(message)
	if code == nil {
		return message
	}
	text := "AWS refuses"
	if call := operation.FindStringSubmatch(message); call != nil {
		text += " " + call[1] + " " + call[2]
	}
	text += ", code: " + code[1]
	if what := remedy.Launch(code[1]); what != "" {
		text += " (" + what + ")"
	}
	return text
}
