package scope

import "os"

// Variables by which an installation tells the operator and what runs beside it their scope.
const (
	EnvScoped = "ENABLE_HOSTEDCLUSTERS_ANNOTATION_SCOPING" // "true": there is one
	EnvScope  = "HOSTEDCLUSTERS_SCOPE_ANNOTATION"
)

// FromEnvironment is the scope of the process, nil when it has none.
func FromEnvironment() *string {
	if os.Getenv(EnvScoped) != "true" {
		return nil
	}
	scope := os.Getenv(EnvScope)
	return &scope
}
