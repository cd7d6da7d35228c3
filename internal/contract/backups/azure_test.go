package backups

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func TestParseAzure(t *testing.T) {
	const key = "0123456789abcdef"
	for name, tc := range map[string]struct {
		text string
		mode AzureMode
		says string // of the refusal
	}{
		"When it is a client it should be known by its secret":        {`{"subscriptionId":"s","tenantId":"t","clientId":"c","clientSecret":"` + key + `"}`, AzureClientSecret, ""},
		"When it is a managed identity it should be known":            {`{"tenant_id":"t","client_id":"c","client_secret":"` + key + `","authentication_endpoint":"https://login.microsoftonline.com"}`, AzureManagedIdentity, ""},
		"When it is the key of an account it should be known":         {`{"accountKey":"` + key + `"}`, AzureAccountKey, ""},
		"When Velero has a workload identity it should be known":      {"AZURE_SUBSCRIPTION_ID=s\nAZURE_TENANT_ID=t\nAZURE_CLIENT_ID=c\n", AzureWorkloadIdentity, ""},
		"When Velero's identity has no tenant it should be known":     {"AZURE_CLIENT_ID=c", AzureWorkloadIdentity, ""},
		"When Velero has a client it should be known by its secret":   {"AZURE_TENANT_ID=t\nAZURE_CLIENT_ID='c'\nAZURE_CLIENT_SECRET=\"" + key + "\"\n", AzureClientSecret, ""},
		"When Velero has the key of an account it should be known":    {"AZURE_STORAGE_ACCOUNT_ACCESS_KEY=" + key, AzureAccountKey, ""},
		"When there is nothing it should say what it must be":         {"", "", "JSON with tenantId"},
		"When it is no JSON it should say what it must be":            {`{"clientSecret":"` + key, "", "JSON with tenantId"},
		"When it is AWS's it should say what it must be":              {"[default]\naws_secret_access_key = " + key, "", "JSON with tenantId"},
		"When a client has no tenant it should say so":                {`{"clientId":"c","clientSecret":"` + key + `"}`, "", "tenantId (AZURE_TENANT_ID)"},
		"When the endpoint is no URL it should name the field":        {`{"accountKey":"` + key + `","blobEndpoint":"mine"}`, "", "blobEndpoint (AZURE_BLOB_ENDPOINT)"},
		"When the endpoint is signed it should be refused":            {`{"accountKey":"` + key + `","blobEndpoint":"https://mine?sig=x"}`, "", "blobEndpoint"},
		"When the authority is no URL it should name the field":       {`{"clientId":"c","activeDirectoryEndpointUrl":"ftp://login"}`, "", "activeDirectoryEndpointUrl (AZURE_AUTHORITY_HOST)"},
		"When it is longer than credentials are it should be refused": {strings.Repeat(key, 10_000), "", "more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, err := ParseAzure([]byte(tc.text))
			if tc.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
				g.Expect(err.Error()).NotTo(ContainSubstring(key), "a key is a secret")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.Mode()).To(Equal(tc.mode))
		})
	}
	t.Run("When the cloud is named accounts should be those of that cloud", func(t *testing.T) {
		for text, want := range map[string]string{
			"AZURE_CLIENT_ID=c": "https://mine.blob.core.windows.net",
			"AZURE_CLIENT_ID=c\nAZURE_CLOUD_NAME=AzureUSGovernmentCloud":                                      "https://mine.blob.core.usgovcloudapi.net",
			"AZURE_CLIENT_ID=c\nAZURE_CLOUD_NAME=AzureChinaCloud":                                             "https://mine.blob.core.chinacloudapi.cn",
			`{"clientId":"c","tenantId":"t","activeDirectoryEndpointUrl":"https://login.microsoftonline.us"}`: "https://mine.blob.core.usgovcloudapi.net",
			`{"clientId":"c","tenantId":"t","blobEndpoint":"https://storage.example.com/mine/"}`:              "https://storage.example.com/mine",
		} {
			g := NewWithT(t)
			c, err := ParseAzure([]byte(text))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.EndpointOf("mine")).To(Equal(want))
		}
	})
}

func TestAzureOf(t *testing.T) {
	g := NewWithT(t)
	identity, client := []byte("AZURE_CLIENT_ID=c\n"), []byte(`{"tenantId":"t","clientId":"c","clientSecret":"x"}`)
	for _, tc := range []struct {
		data map[string][]byte
		key  string
		mode AzureMode
	}{
		{map[string][]byte{CloudKey: identity}, CloudKey, AzureWorkloadIdentity},
		{map[string][]byte{CredentialsKey: client}, CredentialsKey, AzureClientSecret},
		// What the plugin of OADP writes: the same twice.
		{map[string][]byte{CloudKey: identity, CredentialsKey: identity}, CloudKey, AzureWorkloadIdentity},
		// A cloud file that says nobody's name.
		{map[string][]byte{CloudKey: []byte("AZURE_CLOUD_NAME=AzurePublicCloud\n"), CredentialsKey: client}, CredentialsKey, AzureClientSecret},
	} {
		c, key, err := AzureOf(tc.data)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(key).To(Equal(tc.key))
		g.Expect(c.Mode()).To(Equal(tc.mode))
	}
	_, key, err := AzureOf(nil)
	g.Expect(err).To(HaveOccurred())
	g.Expect(key).To(Equal(CredentialsKey))
}

func TestWithSecret(t *testing.T) {
	for url, want := range map[string]bool{
		"s3://backups/demo/1.db": true, "https://mine.blob.core.windows.net/backups/1.db.enc": true,
		"https://mine.blob.core.windows.net/backups/1.db.enc?sig=x": false, "https://mine.blob.core.windows.net/backups/1.db": false, "http://127.0.0.1:10000/mine/backups/1.db.enc": true, "ftp://mine/1.db.enc": false, "https:///1.db.enc": false, "%": false,
	} {
		NewWithT(t).Expect(WithSecret(url)).To(Equal(want), url)
	}
}

// TestSplitBlobURL: a URL that is taken leads to a host of Azure's, or to the endpoint, and to nobody else.
func TestSplitBlobURL(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := AzureCredentials{Endpoint: rapid.SampledFrom([]string{"", "https://storage.example.com/mine"}).Draw(t, "endpoint")}
		piece := rapid.SampledFrom([]string{"https://", "http://", "mine", ".blob.core.windows.net", "storage.example.com", "/", "@", ":", "?", "#", "backups", "1.db.enc", "..", "%2f", "evil.example", "\\"})
		url := strings.Join(rapid.SliceOfN(piece, 1, 10).Draw(t, "url"), "")
		account, container, name, err := c.SplitBlobURL(url)
		if err != nil {
			return
		}
		if account == "" || container == "" || name == "" {
			t.Fatalf("%q is taken, and names nothing", url)
		}
		if !strings.HasPrefix(url, "https://mine.blob.core.windows.net/") && (c.Endpoint == "" || !strings.HasPrefix(url, c.Endpoint+"/")) {
			t.Fatalf("%q is taken", url)
		}
	})
}
