package connector

import "hcp.internal/platform/internal/packages/control/pod"

// Name of the program, and of everything that it is deployed as.
const Name = pod.ConnectorName

// DefaultClass is that of phases whose objects go to the hosted cluster.
const DefaultClass = "hosted-cluster"

// LeaseName is that of the published program.
const LeaseName = "klsdfu452p3.package-operator-lock"
