// Package adoption is what a hosted cluster gets when it is taken on, its identity, and a memory of those that were taken on just now.
package adoption
