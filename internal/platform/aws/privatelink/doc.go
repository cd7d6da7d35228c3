// Package privatelink makes private ways from the VPC of a hosted cluster's machines to the load balancers of its control plane. An AWSEndpointService
// stands for each; three controllers meet in it:
//
//	Balancers  in the control plane's namespace: Service with a load balancer ──▶ AWSEndpointService
//	Services   for a whole management cluster:   load balancer ──▶ VPC endpoint service, and who may connect to it
//	Endpoints  in the control plane's namespace: endpoint service ──▶ security group, VPC endpoint, DNS records, names for users
//
// What is decided is in names.go and rules.go, which call nobody.
package privatelink
