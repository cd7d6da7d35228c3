// Package placement decides which nodes of the management cluster serve the requests of one hosted cluster alone. It is pure; package fleet feeds it.
//
// Such nodes are made in pairs by whoever runs the fleet: nodes with label request-serving-component, the name of their pair (PairLabel), and the
// size of clusters that they are for (cluster-size). A hosted cluster owns a pair: the claim is written first, and then nodes of the pair, of the
// cluster's size and in different zones, get its labels and its taint. When its size changes it takes nodes of the new size in the same pair,
// and gives those of the old size back once no pod of it is there any more. A node that fails is replaced by another of the pair in the same way.
package placement
