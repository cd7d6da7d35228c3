package infra

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	. "github.com/onsi/gomega"
)

// storage plays EC2 with volumes and snapshots of a cluster.
type storage struct {
	volume, snapshot string // empty: there is none
	denied           string // a call that is refused
}

func (s storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	action := r.FormValue("Action")
	if action == s.denied {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors><RequestID>1</RequestID></Response>")
		return
	}
	item := ""
	switch {
	case action == "DescribeVolumes" && s.volume != "":
		item = "<volumeSet><item><volumeId>" + s.volume + "</volumeId></item></volumeSet>"
	case action == "DescribeSnapshots" && s.snapshot != "":
		item = "<snapshotSet><item><snapshotId>" + s.snapshot + "</snapshotId></item></snapshotSet>"
	}
	fmt.Fprintf(w, `<%[1]sResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>1</requestId>%[2]s</%[1]sResponse>`, action, item)
}

func TestFarewell(t *testing.T) {
	for name, tc := range map[string]struct {
		storage storage
		want    []string
	}{
		"When nothing has the tag any more it should say so": {want: []string{"nothing of infrastructure demo is left"}},
		"When volumes and snapshots have it it should name them, and what to do": {storage: storage{volume: "vol-1", snapshot: "snap-1"}, want: []string{
			"left of infrastructure demo, because they hold data: volume vol-1, snapshot snap-1; delete those that nobody needs with `aws ec2 delete-volume --volume-id ID` and `aws ec2 delete-snapshot --snapshot-id ID`",
			"nothing else of infrastructure demo is left"}},
		"When snapshots may not be listed it should name the volumes, and say so": {storage: storage{volume: "vol-1", denied: "DescribeSnapshots"}, want: []string{
			"left of infrastructure demo, because they hold data: volume vol-1;", "not all volumes and snapshots could be looked for: "}},
		"When volumes may not be listed it should not say that nothing is left": {storage: storage{denied: "DescribeVolumes"}, want: []string{
			"nothing else of infrastructure demo is left, but not all volumes and snapshots could be looked for: "}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(tc.storage)
			defer server.Close()
			var said []string
			account := NewAccount(aws.Config{Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")})
			w := &wreck{Surroundings: Surroundings{Log: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }},
				o: DestroyOptions{InfraID: "demo"}, a: Accounts{Cluster: account}, net: account.ec2}
			w.farewell(t.Context())
			g.Expect(said).To(HaveLen(len(tc.want)))
			for i, want := range tc.want {
				g.Expect(said[i]).To(ContainSubstring(want))
			}
		})
	}
}
