package machines

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/tags"
)

const (
	sshPort     = 22
	bastionType = types.InstanceTypeT2Micro
	// bastionImage names the newest image when the list of images can't be read.
	bastionImage = "resolve:ssm:/aws/service/ami-amazon-linux-latest/amzn2-ami-hvm-x86_64-gp2"
	lookWait     = 5 * time.Second
)

// Bastion says which machine to make.
type Bastion struct {
	InfraID string
	// PublicKey is a line in OpenSSH's format.
	PublicKey []byte
	// AllowCIDR may reach its SSH port.
	AllowCIDR      string
	AdditionalTags tags.Set
	// Wait until it runs, at most WaitTime.
	Wait     bool
	WaitTime time.Duration

	Log func(format string, args ...any)
	// Pause waits for a while, or until the context ends.
	Pause func(context.Context, time.Duration) error
}

// Made is a bastion that is there.
type Made struct{ ID, PublicIP string }

func (b Bastion) name() string  { return b.InfraID + "-bastion" }
func (b Bastion) group() string { return b.InfraID + "-bastion-sg" }

func (b Bastion) owned(name string, more ...types.Filter) []types.Filter {
	return append(ec2values.Owned(b.InfraID, ec2values.Named(name)), more...)
}

func (b Bastion) tagged(kind types.ResourceType, name string) []types.TagSpecification {
	return ec2values.Tagged(kind, tags.Of(b.InfraID, "", b.AdditionalTags).With(tags.Name, name))
}

// once makes a client ask only once, since a repeated request could make a second machine.
func once(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }

// Validate tells what no request could succeed with.
func (b Bastion) Validate() error {
	var errs []error
	if b.InfraID == "" {
		errs = append(errs, errors.New("--infra-id is required"))
	}
	if _, err := netip.ParsePrefix(b.AllowCIDR); err != nil {
		errs = append(errs, fmt.Errorf("--allow-cidr %q: must be a range such as 192.0.2.7/32", b.AllowCIDR))
	}
	if key := strings.TrimSpace(string(b.PublicKey)); !strings.HasPrefix(key, "ssh-") {
		errs = append(errs, errors.New("the public SSH key must be a line that begins with ssh-"))
	}
	return errors.Join(errs...)
}

// Create makes the machine, or gives the one that is there.
func (b Bastion) Create(ctx context.Context, cfg aws.Config) (*Made, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	made, err := b.create(ctx, ec2.NewFromConfig(cfg))
	if err != nil {
		return nil, fault.Explain(err)
	}
	return made, nil
}

func (b Bastion) create(ctx context.Context, client *ec2.Client) (*Made, error) {
	vpcs, err := client.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: b.owned(b.InfraID + "-vpc")})
	if err != nil {
		return nil, err
	}
	if len(vpcs.Vpcs) == 0 {
		return nil, fmt.Errorf("VPC %s-vpc not found: check --infra-id and --region", b.InfraID)
	}
	vpc := aws.ToString(vpcs.Vpcs[0].VpcId)
	group, err := b.ensureGroup(ctx, client, vpc)
	if err != nil {
		return nil, err
	}
	if err := b.ensureKey(ctx, client); err != nil {
		return nil, err
	}
	instance, err := b.find(ctx, client)
	if err != nil {
		return nil, err
	}
	if instance == nil {
		if instance, err = b.start(ctx, client, vpc, group); err != nil {
			return nil, err
		}
	}
	return b.wait(ctx, client, instance)
}

func (b Bastion) ensureGroup(ctx context.Context, client *ec2.Client, vpc string) (string, error) {
	name := b.group()
	out, err := client.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: b.owned(name)})
	if err != nil {
		return "", err
	}
	var id string
	var rules []types.IpPermission
	if len(out.SecurityGroups) > 0 {
		id, rules = aws.ToString(out.SecurityGroups[0].GroupId), out.SecurityGroups[0].IpPermissions
	} else {
		made, err := client.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{GroupName: &name, Description: aws.String("bastion security group"),
			VpcId: &vpc, TagSpecifications: b.tagged(types.ResourceTypeSecurityGroup, name)}, once)
		if err != nil {
			return "", err
		}
		id = aws.ToString(made.GroupId)
		b.Log("security group %s made", name)
	}
	if slices.ContainsFunc(rules, func(p types.IpPermission) bool {
		return aws.ToInt32(p.FromPort) == sshPort && slices.ContainsFunc(p.IpRanges, func(r types.IpRange) bool { return aws.ToString(r.CidrIp) == b.AllowCIDR })
	}) {
		return id, nil
	}
	_, err = client.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &id, IpPermissions: []types.IpPermission{{
		IpProtocol: aws.String("tcp"), FromPort: aws.Int32(sshPort), ToPort: aws.Int32(sshPort), IpRanges: []types.IpRange{{CidrIp: &b.AllowCIDR}}}}})
	if err != nil && !fault.Is(err, "InvalidPermission.Duplicate") {
		return "", err
	}
	return id, nil
}

func (b Bastion) ensureKey(ctx context.Context, client *ec2.Client) error {
	name := b.name()
	_, err := client.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{KeyNames: []string{name}})
	if err == nil || !fault.Gone(err) {
		return err
	}
	_, err = client.ImportKeyPair(ctx, &ec2.ImportKeyPairInput{KeyName: &name, PublicKeyMaterial: b.PublicKey, TagSpecifications: b.tagged(types.ResourceTypeKeyPair, name)})
	if fault.Is(err, "InvalidKeyPair.Duplicate") {
		return nil
	}
	return err
}

// live are states of machines that are there, or will be.
var live = ec2values.Filter("instance-state-name", "pending", "running", "stopping", "stopped")

func (b Bastion) find(ctx context.Context, client *ec2.Client) (*types.Instance, error) {
	out, err := client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: b.owned(b.name(), live)})
	if err != nil || len(out.Reservations) == 0 || len(out.Reservations[0].Instances) == 0 {
		return nil, err
	}
	return &out.Reservations[0].Instances[0], nil
}

func (b Bastion) start(ctx context.Context, client *ec2.Client, vpc, group string) (*types.Instance, error) {
	subnets, err := client.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: ec2values.Owned(b.InfraID, ec2values.Filter("vpc-id", vpc))})
	if err != nil {
		return nil, err
	}
	var subnet *string
	for _, s := range subnets.Subnets {
		for _, tag := range s.Tags {
			if aws.ToString(tag.Key) == tags.Name && strings.HasPrefix(aws.ToString(tag.Value), b.InfraID+"-public-") {
				subnet = s.SubnetId
			}
		}
	}
	if subnet == nil {
		return nil, fmt.Errorf("VPC %s has no public subnet %s-public-…", vpc, b.InfraID)
	}
	out, err := client.RunInstances(ctx, &ec2.RunInstancesInput{
		ImageId: aws.String(b.image(ctx, client)), InstanceType: bastionType, KeyName: aws.String(b.name()), MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{{
			DeviceIndex: aws.Int32(0), AssociatePublicIpAddress: aws.Bool(true), DeleteOnTermination: aws.Bool(true), SubnetId: subnet, Groups: []string{group}}},
		TagSpecifications: b.tagged(types.ResourceTypeInstance, b.name()),
	}, once)
	if err != nil {
		return nil, err
	}
	b.Log("machine %s made", b.name())
	return &out.Instances[0], nil
}

// image is the newest of Amazon's.
func (b Bastion) image(ctx context.Context, client *ec2.Client) string {
	out, err := client.DescribeImages(ctx, &ec2.DescribeImagesInput{Filters: []types.Filter{
		ec2values.Filter("name", "amzn2-ami-hvm-*-x86_64-gp2"), ec2values.Filter("owner-alias", "amazon"), ec2values.Filter("state", "available")}})
	if err != nil || len(out.Images) == 0 {
		return bastionImage
	}
	newest := slices.MaxFunc(out.Images, func(x, y types.Image) int {
		return strings.Compare(aws.ToString(x.CreationDate), aws.ToString(y.CreationDate))
	})
	return aws.ToString(newest.ImageId)
}

// wait until it runs, if that is asked for.
func (b Bastion) wait(ctx context.Context, client *ec2.Client, instance *types.Instance) (*Made, error) {
	for spent := time.Duration(0); ; spent += lookWait {
		made := &Made{ID: aws.ToString(instance.InstanceId), PublicIP: aws.ToString(instance.PublicIpAddress)}
		if !b.Wait || (instance.State != nil && instance.State.Name == types.InstanceStateNameRunning && made.PublicIP != "") {
			return made, nil
		}
		if spent >= b.WaitTime {
			return nil, fmt.Errorf("machine %s doesn't run after %s: run the command again", made.ID, b.WaitTime)
		}
		if err := b.Pause(ctx, lookWait); err != nil {
			return nil, err
		}
		again, err := b.find(ctx, client)
		if err != nil {
			return nil, err
		}
		if again == nil {
			return nil, fmt.Errorf("machine %s has ended: run the command again", made.ID)
		}
		instance = again
	}
}

// Destroy removes machine, security group and key, pass by pass until they are gone.
func (b Bastion) Destroy(ctx context.Context, cfg aws.Config) error {
	if b.InfraID == "" {
		return errors.New("--infra-id is required")
	}
	client := ec2.NewFromConfig(cfg)
	for {
		err := b.remove(ctx, client)
		if err == nil {
			return nil
		}
		if !fault.Later(err) && !fault.Passing(err) {
			return fault.Explain(err)
		}
		b.Log("waiting: %s", fault.Explain(err))
		if err := b.Pause(ctx, lookWait); err != nil {
			return err
		}
	}
}

func (b Bastion) remove(ctx context.Context, client *ec2.Client) error {
	instance, err := b.find(ctx, client)
	if err != nil {
		return err
	}
	if instance != nil {
		if _, err := client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{aws.ToString(instance.InstanceId)}}); err != nil && !fault.Gone(err) {
			return err
		}
		b.Log("terminating machine %s", b.name())
	}
	groups, err := client.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: b.owned(b.group())})
	if err != nil {
		return err
	}
	for _, group := range groups.SecurityGroups {
		if _, err := client.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: group.GroupId}); err != nil && !fault.Gone(err) {
			return err
		}
	}
	name := b.name()
	if _, err := client.DeleteKeyPair(ctx, &ec2.DeleteKeyPairInput{KeyName: &name}); err != nil && !fault.Gone(err) {
		return err
	}
	return nil
}
