// Package observe reads what package why looks at, with few requests, each bounded in time and number of objects.
//
// Of a hosted cluster it reads the HostedCluster, its NodePools and its control plane's namespace, never those of others: the cost is the same with
// one hosted cluster and with a thousand. What can't be read is noted in Snapshot.Unread, and the rules do without it.
package observe
