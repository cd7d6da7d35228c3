package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// tourHeading is the section of the README whose commands somebody pastes after "make up".
const tourHeading = "## Three minutes"

// readmeBlock is the text of the fenced blocks of a section, as they stand, without the fences.
func readmeBlock(readme, heading string) (string, error) {
	_, section, found := strings.Cut(readme, "\n"+heading+"\n")
	if !found {
		return "", fmt.Errorf("the README has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var block strings.Builder
	inside := false
	for line := range strings.Lines(section) {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside
		case inside:
			block.WriteString(line)
		}
	}
	if block.Len() == 0 {
		return "", fmt.Errorf("section %q of the README has no commands", heading)
	}
	return block.String(), nil
}

// promise is what a command of the tour prints by its comment, or by what a reader may take for granted.
type promise struct {
	command *regexp.Regexp
	// prints are patterns that its output has to match, in any order.
	prints []string
}

func promised(command string, prints ...string) promise {
	return promise{command: regexp.MustCompile("^" + regexp.QuoteMeta(command)), prints: prints}
}

// tourPromises has one entry for each command of the tour, in the README's order.
var tourPromises = []promise{
	promised("export KUBECONFIG="),
	promised("kubectl get hostedclusters,nodepools -A", `(?m)^clusters +hostedcluster\S*/demo +1\.\d+\.\d+ .*True`, `(?m)^clusters +nodepool\S*/demo +demo +2 +2 `),
	promised("kubectl get controlplanecomponents -n clusters-demo", `(?m)^etcd +`, `(?m)^kube-apiserver +`, `(?m)^control-plane-operator +|(?m)^kube-scheduler +`),
	promised("kubectl get pods -n clusters-demo", `(?m)^etcd-0 +1/1 +Running`, `(?m)^kube-apiserver-\S+ +\d/\d +Running`, `(?m)^demo-\S+ +1/1 +Running`),
	promised("alias demo="),
	promised("demo get nodes", `(?m)^demo-\S+ +Ready .*\n.*^demo-\S+ +Ready `),
	promised("demo apply -f docs/examples/webapp.yaml", "deployment.apps/webapp created", "service/webapp created"),
	promised("demo rollout status deployment/webapp", "successfully rolled out"),
	promised("curl ", `(?m)^Hello from webapp-\S+, version `),
	promised("demo logs deployment/webapp", "listens at"),
	promised("demo exec deployment/webapp ", `(?m)^Hello from webapp-\S+, version `),
	promised("kubectl get package,deployment -n clusters-demo hello", `(?m)^package\S*/hello +True +False `, `(?m)^deployment\S*/hello +1/1`),
	promised("demo get deployment,configmap hello", `deployment\S*/hello +1/1`, `configmap/hello +`),
	promised("kubectl scale nodepool -n clusters demo --replicas 3", "scaled"),
	promised("hypershift create cluster local --name second", "clusters/second"),
	promised("hypershift create kubeconfig --name second"),
	promised("hypershift destroy cluster local --name second", "clusters/second"),
}

// tourLines are the lines of a block that do something. Each is a whole command.
func tourLines(block string) []string {
	var lines []string
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, "\n")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestReadmeTour(t *testing.T) {
	g := NewWithT(t)
	readme, err := os.ReadFile("../../README.md")
	g.Expect(err).NotTo(HaveOccurred())
	block, err := readmeBlock(string(readme), tourHeading)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Count(string(readme), "\n")).To(BeNumerically("<", 120), "the README stays short: what is longer has a page in docs")
	lines := tourLines(block)
	g.Expect(lines).To(HaveLen(len(tourPromises)), "each command of the tour says in tourPromises what it prints")
	for i, line := range lines {
		g.Expect(tourPromises[i].command.MatchString(line)).To(BeTrue(), "command %d, %q, is not the one of %q", i+1, line, tourPromises[i].command)
	}
}

func TestReadmeBlock(t *testing.T) {
	g := NewWithT(t)
	block, err := readmeBlock("# a\n\n## One\n\ntext\n\n```sh\nfirst  # as it is\n\nsecond\n```\nmore\n```sh\nthird\n```\n\n## Two\n```sh\nfourth\n```\n", "## One")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(block).To(Equal("first  # as it is\n\nsecond\nthird\n"))
	_, err = readmeBlock("# a\n\n## One\n", "## Two")
	g.Expect(err).To(HaveOccurred())
}
