// Package aws is the platform of hosted clusters whose machines are instances of Amazon EC2, made by the stock provider of Cluster API.
//
// Objects of that provider are built as JSON, with the names of its version v1beta2: its own types would bring the SDK of every service with
// them. Tests hold them against its definitions.
package aws
