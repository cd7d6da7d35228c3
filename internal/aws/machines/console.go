// Package machines looks at a hosted cluster's machines on AWS, and makes one from which they can be reached.
package machines

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/tags"
)

const (
	// maxPages bounds a listing.
	maxPages = 1000
	// maxConsole bounds what is kept of a console, in bytes; AWS keeps 64 KiB.
	maxConsole = 1 << 20
)

// Console is what a machine printed.
type Console struct {
	// File is a name for it, of letters that are harmless in a path.
	File string
	Text []byte
}

// Consoles gives visit what each running machine of a cluster printed. A machine whose console can't be read is told by visit's error
// and doesn't keep the others back.
func Consoles(ctx context.Context, cfg aws.Config, infraID string, visit func(Console, error) error) error {
	if infraID == "" {
		return errors.New("the cluster has no infrastructure ID")
	}
	client := ec2.NewFromConfig(cfg)
	var token *string
	for range maxPages {
		out, err := client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{NextToken: token,
			Filters: ec2values.Owned(infraID, ec2values.Filter("instance-state-name", "running"))})
		if err != nil {
			return fault.Explain(err)
		}
		for _, reservation := range out.Reservations {
			for _, instance := range reservation.Instances {
				console, err := read(ctx, client, instance)
				if err := visit(console, err); err != nil {
					return err
				}
			}
		}
		if token = out.NextToken; aws.ToString(token) == "" {
			return nil
		}
	}
	return errors.New("listing machines: the list has no end")
}

func read(ctx context.Context, client *ec2.Client, instance types.Instance) (Console, error) {
	console := Console{File: fileName(instance)}
	out, err := client.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: instance.InstanceId})
	if err != nil {
		return console, fmt.Errorf("machine %s: %w", console.File, fault.Explain(err))
	}
	encoded := aws.ToString(out.Output)
	if len(encoded) > base64.StdEncoding.EncodedLen(maxConsole) {
		return console, fmt.Errorf("machine %s: its console is larger than %d bytes", console.File, maxConsole)
	}
	if console.Text, err = base64.StdEncoding.DecodeString(encoded); err != nil {
		return console, fmt.Errorf("machine %s: its console isn't in base64", console.File)
	}
	return console, nil
}

// harmful are letters that don't go into a file's name: tags are anybody's who may tag.
var harmful = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// fileName is the machine's name, or its identifier when it has none that a file could have.
func fileName(instance types.Instance) string {
	for _, tag := range instance.Tags {
		if aws.ToString(tag.Key) != tags.Name {
			continue
		}
		name := harmful.ReplaceAllString(aws.ToString(tag.Value), "_")
		if len(name) > 0 && len(name) <= 200 && name != "." && name != ".." {
			return name
		}
	}
	return harmful.ReplaceAllString(aws.ToString(instance.InstanceId), "_")
}
