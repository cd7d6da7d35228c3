package kubeconfig

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestForeign(t *testing.T) {
	const program = `user "u" has credentials that a program or a file gives: put a token or a certificate into the kubeconfig`
	for name, tc := range map[string]struct{ user, says string }{
		"When it holds a token it should be read":                        {user: `{token: t}`},
		"When it holds a certificate it should be read":                  {user: `{client-certificate-data: YQ==, client-key-data: YQ==}`},
		"When it names a program it should be refused":                   {user: `{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}}`, says: program},
		"When it names a plugin it should be refused":                    {user: `{auth-provider: {name: oidc}}`, says: program},
		"When its token is in a file it should be refused":               {user: `{tokenFile: /etc/passwd}`, says: program},
		"When its key is in a file it should be refused":                 {user: `{client-certificate-data: YQ==, client-key: /root/.ssh/id_rsa}`, says: program},
		"When its certificate is in a file it should be refused":         {user: `{client-certificate: /etc/kubernetes/pki/client.crt}`, says: program},
		"When it can't be parsed it should be refused without its words": {user: `{token: canary`, says: ErrNone.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, err := Foreign([]byte("apiVersion: v1\nkind: Config\nusers: [{name: u, user: " + tc.user + "}]\n"))
			if tc.says != "" {
				g.Expect(err).To(MatchError(tc.says))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.AuthInfos).To(HaveKey("u"))
		})
	}
}
