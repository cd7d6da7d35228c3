package ignite

import "time"

const (
	// maxConfig bounds one config, uncompressed. Configs of large clusters have about 1 MiB.
	maxConfig = 32 << 20
	// maxConfigs and maxDepth bound how many configs one leads to.
	maxConfigs = 32
	maxDepth   = 8
	// maxFile bounds one file's content, maxTotal that of all files.
	maxFile  = 2 << 30
	maxTotal = 8 << 30
	// maxEntries bounds the number of files, directories, links and units.
	maxEntries = 10_000
	// maxRedirects is what Ignition follows.
	maxRedirects = 10
	// headersTimeout is how long a server may take to answer unless the config says otherwise; Ignition's default.
	headersTimeout = 10 * time.Second
	// dialTimeout bounds connecting, and the TLS handshake.
	dialTimeout = 10 * time.Second
	// fetchTimeout bounds one transfer unless the config says otherwise.
	fetchTimeout = 10 * time.Minute
)
