// Package privatelink makes private ways from the virtual network of a hosted cluster's machines to the load balancers of its control plane, on Azure. An
// AzurePrivateLinkService stands for each, which package privatelinks asks for; two controllers meet in it:
//
//	Services   for a whole management cluster:   internal load balancer ──▶ subnet for address translation, Private Link service, and who may connect to it
//	Endpoints  in the control plane's namespace: Private Link service ──▶ private endpoint, private DNS zones and records, names for users
//
// What is decided is in names.go, which calls nobody.
package privatelink
