package awsemulator

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestNamed(t *testing.T) {
	const mac = "<macAddress>1b:2b:3c:4d:5e:6f</macAddress>\n  <privateIpAddress>10.0.0.4</privateIpAddress>"
	for name, tc := range map[string]struct{ raw, want string }{
		"When an instance has a name its interface should have it, too": {
			"<privateDnsName>ip-10-0-0-4.eu-west-1.compute.internal</privateDnsName>" + mac + "<sourceDestCheck/>",
			"<privateDnsName>ip-10-0-0-4.eu-west-1.compute.internal</privateDnsName>" + mac + "<privateDnsName>ip-10-0-0-4.eu-west-1.compute.internal</privateDnsName><sourceDestCheck/>"},
		"When no instance has the address it should have none": {"<privateDnsName>ip-10-0-0-5.x</privateDnsName>" + mac + "<sourceDestCheck/>", "<privateDnsName>ip-10-0-0-5.x</privateDnsName>" + mac + "<sourceDestCheck/>"},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(string(named([]byte(tc.raw)))).To(Equal(tc.want)) })
	}
}
