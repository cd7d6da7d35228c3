// Command push builds stand-in payloads from a checkout and pushes them to the registry of its local cluster.
//
//	CGO_ENABLED=0 go build -o bin/standin ./test/standin/cmd
//	go run ./test/standin/push 4.22.0 4.22.1
package main

import (
	"context"
	"fmt"
	"os"

	"hcp.internal/platform/internal/local/builds"
	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/test/standin/payload"
)

// kubernetes is the version of the bundle in the payloads.
const kubernetes = "1.36.3"

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, versions []string) error {
	root, err := builds.FindRoot(".")
	if err != nil {
		return err
	}
	for _, version := range versions {
		s, err := payload.FromCheckout(ctx, root, components.RegistryHost+"/standin", version, kubernetes, components.RegistryHost+"/hypershift/release:"+kubernetes)
		if err != nil {
			return err
		}
		ref, err := payload.Push(ctx, s)
		if err != nil {
			return err
		}
		fmt.Println(ref)
	}
	return nil
}
