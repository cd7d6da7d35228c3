package kit

import "hcp.internal/platform/internal/contract/payload"

// AWSCredentials are the content of a credentials file for a role.
func AWSCredentials(roleARN string) string { return payload.AWSCredentials(roleARN) }
