package kit

import "fmt"

// webIdentity is a file of AWS credentials by which a program assumes a role with a token that the token minter keeps fresh.
const webIdentity = `[default]
role_arn = %s
web_identity_token_file = /var/run/secrets/openshift/serviceaccount/token
sts_regional_endpoints = regional
`

// AWSCredentials are the content of a credentials file for a role.
func AWSCredentials(roleARN string) string { return fmt.Sprintf(webIdentity, roleARN) }
