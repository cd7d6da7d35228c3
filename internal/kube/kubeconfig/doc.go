// Package kubeconfig reads kubeconfigs that somebody else wrote: a tenant, or whoever can write a Secret in a tenant's namespace.
package kubeconfig
