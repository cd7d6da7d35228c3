// Package remedy says what to do when AWS refuses to make an instance. It links nothing of AWS's SDK, so that programs which only tell of instances stay small.
package remedy

import "strings"

// launch are remedies by the code of RunInstances' answer.
var launch = map[string]string{
	"InsufficientInstanceCapacity":          "the zone has no such machine free: wait, or take another zone by spec.platform.aws.subnet, or another spec.platform.aws.instanceType",
	"InsufficientReservedInstanceCapacity":  "the zone has no such machine free: wait, or take another zone by spec.platform.aws.subnet, or another spec.platform.aws.instanceType",
	"InsufficientHostCapacity":              "the dedicated hosts are full: add one, or take another spec.platform.aws.placement.tenancy",
	"InsufficientFreeAddressesInSubnet":     "the subnet has no address left: take another by spec.platform.aws.subnet",
	"InvalidAMIID.NotFound":                 "the image does not exist in the region: name another by spec.platform.aws.ami",
	"InvalidAMIID.Malformed":                "the image has no valid ID: write spec.platform.aws.ami as ami-…",
	"InvalidAMIID.Unavailable":              "the image is not available: name another by spec.platform.aws.ami",
	"InvalidSubnetID.NotFound":              "the subnet does not exist: name one of the cluster's VPC by spec.platform.aws.subnet",
	"InvalidGroup.NotFound":                 "a security group does not exist: name those of the VPC by spec.platform.aws.securityGroups",
	"InvalidSecurityGroupID.NotFound":       "a security group does not exist: name those of the VPC by spec.platform.aws.securityGroups",
	"InvalidInstanceType":                   "the instance type does not exist: name another by spec.platform.aws.instanceType",
	"Unsupported":                           "the zone has no such instance type: take another spec.platform.aws.instanceType, or another zone by spec.platform.aws.subnet",
	"UnsupportedOperation":                  "the instance type can't do that: take another spec.platform.aws.instanceType",
	"InvalidParameterValue":                 "a value of spec.platform.aws does not exist in the region, such as the instance type, or a role that was just made is not known yet",
	"InvalidParameterCombination":           "values of spec.platform.aws don't go together, such as the instance type and the image's architecture",
	"InvalidIAMInstanceProfile":             "the instance profile does not exist: name one by spec.platform.aws.instanceProfile",
	"InvalidIamInstanceProfile":             "the instance profile does not exist: name one by spec.platform.aws.instanceProfile",
	"NoSuchEntity":                          "the instance profile does not exist: name one by spec.platform.aws.instanceProfile; `hypershift create iam aws` makes it",
	"InstanceLimitExceeded":                 "ask AWS for a higher quota of running instances, or take fewer machines",
	"VcpuLimitExceeded":                     "ask AWS for a higher quota \"Running On-Demand Standard instances\", or take fewer or smaller machines",
	"VolumeLimitExceeded":                   "ask AWS for a higher quota of volumes, or take smaller ones by spec.platform.aws.rootVolume",
	"MaxSpotInstanceCountExceeded":          "ask AWS for a higher quota \"All Standard Spot Instance Requests\", or take fewer machines",
	"SpotMaxPriceTooLow":                    "raise spec.platform.aws.placement.spot.maxPrice, or leave it out",
	"InvalidCapacityReservationId.NotFound": "the capacity reservation does not exist: name one of the region by spec.platform.aws.placement.capacityReservation.id",
	"ReservationCapacityExceeded":           "the capacity reservation is used up: make it larger, or take fewer machines",
	"InvalidKMSKey.InvalidState":            "enable the KMS key of spec.platform.aws.rootVolume.encryptionKey",
	"UnauthorizedOperation":                 "the role spec.platform.aws.rolesRef.nodePoolManagementARN of the HostedCluster may not do that: `hypershift create iam aws` makes one that may",
	"AuthFailure":                           "check spec.platform.aws.rolesRef.nodePoolManagementARN of the HostedCluster, and that the region is enabled for the account",
	"OptInRequired":                         "subscribe the account to the image or the service, or enable the region in the account's settings",
	"PendingVerification":                   "AWS still verifies the account in this region: wait for its mail",
	"RequestLimitExceeded":                  "the account is asked too often: it is tried again",
	"Throttling":                            "the account is asked too often: it is tried again",
	"ServiceUnavailable":                    "the service has trouble: it is tried again",
	"InternalError":                         "the service has trouble: it is tried again",
}

// Launch is what to do about a code of RunInstances; empty when nothing is known. Case doesn't count: EC2 writes some codes in two ways.
func Launch(code string) string {
	if text := launch[code]; text != "" {
		return text
	}
	for known, text := range launch {
		if strings.EqualFold(known, code) {
			return text
		}
	}
	return ""
}
