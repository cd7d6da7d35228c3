package aws

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// machineThatSays is an AWSMachine as the provider leaves it.
func machineThatSays(status, message string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": status, "message": "1 of 2 completed"}, map[string]any{"type": "InstanceReady", "status": status, "message": message},
	}}}}
}

func TestExplainMachine(t *testing.T) {
	refused := func(code string) string {
		return "failed to create AWSMachine instance: failed to run instance: operation error EC2: RunInstances, https response error StatusCode: 400, RequestID: 1234-5678, api error " + code + ": We don't have it."
	}
	for code, want := range map[string]string{
		"InsufficientInstanceCapacity": "another zone", "InvalidAMIID.NotFound": "spec.platform.aws.ami", "InvalidSubnetID.NotFound": "spec.platform.aws.subnet", "Unsupported": "spec.platform.aws.instanceType",
		"InvalidIamInstanceProfile": "spec.platform.aws.instanceProfile", "VcpuLimitExceeded": "quota", "MaxSpotInstanceCountExceeded": "quota", "SpotMaxPriceTooLow": "maxPrice",
		"ReservationCapacityExceeded": "capacity reservation", "UnauthorizedOperation": "nodePoolManagementARN", "NeverHeardOf": "code: NeverHeardOf",
	} {
		t.Run("When AWS refuses an instance by "+code+" it should tell code and remedy, and nothing that changes", func(t *testing.T) {
			text := Platform{}.ExplainMachine(machineThatSays("False", refused(code)))
			NewWithT(t).Expect(text).To(And(HavePrefix("AWS refuses EC2 RunInstances, code: "+code), ContainSubstring(want), Not(ContainSubstring("1234")), Not(ContainSubstring("We don't"))))
		})
	}
	t.Run("When the provider says something else it should stay", func(t *testing.T) {
		NewWithT(t).Expect(Platform{}.ExplainMachine(machineThatSays("False", "no subnets available matching filters"))).To(Equal("no subnets available matching filters"))
	})
	t.Run("When the instance is ready there should be nothing to tell", func(t *testing.T) {
		NewWithT(t).Expect(Platform{}.ExplainMachine(machineThatSays("True", "x"))).To(BeEmpty())
	})
	t.Run("When the provider has said nothing yet there should be nothing to tell", func(t *testing.T) {
		NewWithT(t).Expect(Platform{}.ExplainMachine(&unstructured.Unstructured{Object: map[string]any{}})).To(BeEmpty())
	})
}
