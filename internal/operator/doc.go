// Package operator is what the controllers of the hypershift-operator have in common: what they are given, and how they hear of the objects of
// users and of lookups of releases. It knows no controller.
package operator
