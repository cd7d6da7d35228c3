// Package local is the platform of hosted clusters whose machines are privileged pods of the management cluster, made by the
// infrastructure provider in package provider below this one.
package local
