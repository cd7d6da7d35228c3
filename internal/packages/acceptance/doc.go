// Package acceptance has the tests that run package-operator-manager as a process of its own, as "hcp-operators package-operator-manager
// --kubeconfig F --namespace NS" does, and those that need an API server where nothing of ours runs.
//
// What the acceptance checklist of the specification asks for is proved by these tests, all on real API servers with the real garbage collector
// (short names are of folders below internal/packages):
//
//	 1 fields, immutability, columns      manager TestImmutable, TestColumns; test/api; tools/schemadiff
//	 2 phases gated by probes             manager TestPhasesAreGated
//	 3 pause, also of class default       manager TestPause, TestPausedDeployment
//	 4 deletion in order, orphans         manager TestTeardown, TestOrphan
//	 5 handover, archival                 manager TestHandover, TestAbortedRollout
//	 6 collisions, recovery               manager TestCollisions, TestRecoversFromCollision; phase TestDecide
//	 7 deployments                        manager TestBrokenRevision, TestRevisionNames, TestDeployment; objectdeployment TestPlan, TestCrash
//	 8 control lost at teardown           manager TestLostControl
//	 9 previous revisions that are gone   manager TestHandover, TestRevisionNames
//	10 packages                           pkg TestInstall, TestRefusals; TestOperator and TestCrashOfPackages here; environment TestGet
//	11 object templates                   manager TestObjectTemplate, TestTemplateMirrorsConditions; TestOperator here
//	12 HyperShift                         hypershift, connector
//	13 HostedClusterPackages              hostedclusterpackage, rollout
//	14 commands and exit codes            internal/cli/kubectlpackage TestOutputs, TestInstalled; cmd/hypershift TestPlugin
//	15 metrics                            metrics TestSeries; TestOperator here
//	16 restricted pods                    TestRestricted here
package acceptance
