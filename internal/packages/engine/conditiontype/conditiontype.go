// Package conditiontype knows which types of conditions a status accepts. A status with one that it doesn't is refused as a whole.
package conditiontype

import "regexp"

// MaxLength is how many characters the type of a condition may have.
const MaxLength = 316

// pattern is what the schema of metav1.Condition demands of types: a name, with or without a domain and a slash before it.
var pattern = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)

// Valid says whether a status accepts a condition of a type.
func Valid(conditionType string) bool {
	return len(conditionType) <= MaxLength && pattern.MatchString(conditionType)
}
