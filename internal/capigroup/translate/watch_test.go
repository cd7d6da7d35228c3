package translate

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestWatch(t *testing.T) {
	const list, object = "/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines", "/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines/m"
	for name, tc := range map[string]struct {
		path, query string
		watch, list bool
	}{
		"When watch is true it should be a watch":                                       {path: list, query: "watch=true", watch: true},
		"When watch is another word it should be a watch, as it is to the server":       {path: list, query: "limit=1&watch=yes", watch: true},
		"When watch is empty it should be a watch":                                      {path: list, query: "watch=", watch: true},
		"When watch has no value it should be a watch":                                  {path: list, query: "watch", watch: true},
		"When watch is escaped it should be a watch":                                    {path: list, query: "wat%63h=1", watch: true},
		"When the first of several is false it should be a list":                        {path: list, query: "watch=false&watch=true", list: true},
		"When watch is 0 it should be a list":                                           {path: list, query: "watch=0", list: true},
		"When watch is False it should be a list":                                       {path: list, query: "watch=False", list: true},
		"When an object is named it should be that object, which the server answers":    {path: object, query: "watch=true"},
		"When the path says watch it should be a watch, of one object as well":          {path: "/apis/cluster.x-k8s.io/v1beta2/watch/namespaces/n/machines/m", watch: true},
		"When another parameter ends in watch it should be a list, as to the server":    {path: list, query: "swatch=1", list: true},
		"When the query can't be read at one place it should be read at the others":     {path: list, query: "a;b=1&watch=1", watch: true},
		"When bookmarks are asked for without a watch it should be a list all the same": {path: list, query: "allowWatchBookmarks=true", list: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, err := Parse("GET", tc.path, tc.query)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect([]bool{r.Watch, r.List}).To(Equal([]bool{tc.watch, tc.list}))
		})
	}
}
