// Command standin plays every program of an OpenShift payload that isn't plain Kubernetes, by the name it is called by.
package main

import (
	"os"

	"hcp.internal/platform/test/standin/run"
)

func main() { os.Exit(run.Main(os.Args)) }
