// Package cloud has the commands with which hcp-cloud works in Azure beside an operator. The operators themselves link no library of a cloud: each runs its
// command as a program of its own where a platform asks for it.
package cloud
