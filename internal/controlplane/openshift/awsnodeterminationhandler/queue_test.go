package awsnodeterminationhandler

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestQueue(t *testing.T) {
	const inSpec, inAnnotation = "https://sqs.eu-west-1.amazonaws.com/123456789012/a", "https://sqs.eu-west-1.amazonaws.com/123456789012/b"
	for name, tc := range map[string]struct {
		spec             *string
		annotation, want string
	}{
		"When the spec names a queue it should be that":                   {ptr.To(inSpec), inAnnotation, inSpec},
		"When only the annotation names one it should be that":            {nil, inAnnotation, inAnnotation},
		"When nobody names one there should be none, and so no component": {nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Spec.Platform.AWS = &hyperv1.AWSPlatformSpec{TerminationHandlerQueueURL: tc.spec}
			hcp.Annotations = map[string]string{hyperv1.AWSTerminationHandlerQueueURLAnnotation: tc.annotation}
			NewWithT(t).Expect(queue(hcp)).To(Equal(tc.want))
		})
	}
}
