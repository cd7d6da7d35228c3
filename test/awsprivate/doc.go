// Package awsprivate tests what hcp-cloud does beside the operators on an emulated AWS: private access to control planes by load balancer, endpoint service,
// endpoint and names, and the check of KMS keys. Its tests run with the tag aws (make e2e-aws).
package awsprivate
