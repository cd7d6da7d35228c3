package hostedclusterpackage

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldOwner is the field manager of Packages, as published.
const FieldOwner = client.FieldOwner("package-operator")

// OwnerLabel of a ControllerRevision holds the UID of its HostedClusterPackage.
const OwnerLabel = "package-operator.run/hostedclusterpackage-uid"

// CompletedAnnotation of a ControllerRevision tells when its template was up in the whole fleet. RFC 3339.
const CompletedAnnotation = "package-operator.run/rollout-completed"
