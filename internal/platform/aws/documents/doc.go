// Package documents publishes the OIDC documents of hosted clusters on AWS in a bucket, where AWS reads by which keys their tokens are signed, and removes
// them with the cluster. It compares what is published with what should be, so that lost documents and new keys are put right.
package documents
