// Package acceptance has the tests that run package-operator-manager as a process of its own, and nothing else.
package acceptance
