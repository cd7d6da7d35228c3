// What the API answers; see internal/console/server. Times are RFC 3339.

export type Health = 'Healthy' | 'Progressing' | 'Deleting' | 'Paused' | 'Blocked' | 'Degraded' | 'Unknown' | 'Archived';

export interface Finding { health: Health; cause?: string; since?: string }
export interface Cluster extends Finding {
  ns: string; name: string; version?: string; target?: string; platform: string; ready: number; wanted: number; pools: number; created: string; deleting?: string;
  labels?: Record<string, string>;
}
export interface Count { name: string; count: number }
export interface Summary {
  total: number; notWell: number; health: Count[]; versions: Count[]; platforms: Count[]; namespaces: Count[]; labels: Count[]; nodes: number; nodesWanted: number;
  upgrading: number; stuckDeletions: number; heldRollouts: number; rollouts: number; groupBy?: string;
}
export interface Fleet { epoch: string; seq: number; show: string; rows: Cluster[]; matching: number; summary: Summary; trouble?: string }
export interface Patch { seq: number; rows?: Cluster[]; gone?: string[]; summary?: Summary; trouble?: string; touched?: boolean }

export interface Obj { kind: string; namespace?: string; name: string }
export interface Link { object: Obj; field: string; text: string; since?: string }
export interface Why {
  object: Obj; state: 'Well' | 'Waiting' | 'Held' | 'Broken'; deleting?: boolean; cause: string; since?: string; chain?: Link[]; do?: string; heals: boolean; rule?: string; notes?: string[];
}
export interface Condition { type: string; status: string; reason: string; message?: string; since: string; good: boolean; counts: boolean }
export interface Entry { at: string; type: string; from?: string; to?: string; reason?: string; message?: string; good: boolean; counts: boolean }
export interface Timeline { entries: Entry[]; first: number; note?: string }
export interface Node extends Finding { name: string; layer: number; version?: string; waits?: string[] }
export interface Edge { from: string; to: string; waits?: boolean }
export interface Graph { nodes: Node[]; edges: Edge[]; more?: number }
export interface Event { at: string; first: string; type: string; reason: string; kind: string; ns: string; name: string; message: string; count: number; parts?: Record<string, number> }
export interface Certificate {
  ns: string; name: string; secret: string; key: string; kind: string; keeper: string; subject: string; issuer: string; notBefore: string; notAfter: string; next?: string; nextAt?: string; soon?: boolean;
}
export interface Sweep { checked: number; left: number; refused: number; at: string; days: number; rows: Certificate[]; clusters: number; trouble?: string }
export interface Outcome { action: string; uid: string; dryRun?: boolean; already?: boolean; field: string; from?: string; to?: string; effects: string[]; command: string; paused: boolean }
export interface Machine extends Finding {
  name: string; set?: string; phase: string; node?: string; version?: string; address?: string; created: string; booted: string; drain?: string; unhealthy?: string;
}
export interface MachineSet { name: string; newest: boolean; wanted: number; ready: number; version?: string; created: string }
export interface Pool extends Finding {
  ns: string; name: string; cluster: string; version?: string; ready: number; wanted: number; scaling?: string; upgrade?: string; created: string;
  why: Why; conditions: Condition[]; sets: MachineSet[]; machines: Machine[]; more?: number; command: string;
}
export interface Package extends Finding { ns: string; name: string; revision?: number; image: string; rollout?: string; created: string }
export interface ClusterPage {
  cluster: Cluster; controlPlane: string; release: string; why: Why; command: string; graph: Graph; conditions: Condition[]; timeline: Timeline;
  stages: { name: string; at?: string; took: number }[]; versions: { version: string; state: string; started: string; completed?: string; image: string }[];
  endpoints: { name: string; host: string }[]; pools: Pool[]; packages: Package[]; warnings: Event[]; commands: { what: string; text: string }[]; notes?: string[];
}
export interface Rollout extends Finding {
  name: string; total: number; updated: number; available: number; inFlight: number; strategy: string; image: string; created: string;
}
export interface Cell { cluster: string; state: 'done' | 'flight' | 'down' | 'waiting' | 'skipped' | 'next'; reason: string; wave?: number; fails?: boolean }
export interface Wave { after: number; group?: string; clusters: string[]; returned?: boolean; used: number; budget: number }
export interface RolloutPage {
  rollout: Rollout; paused: boolean; groups: { name: string; cells: Cell[] }[]; used: number; budget: number; by: string[]; current?: string; soaks?: boolean; finished: boolean; said?: string;
  forecast: { perCluster: number; waves: Wave[]; seconds: number; finished: boolean; left: number; more?: number };
  conditions: Condition[]; timeline: Timeline; warnings?: string[]; commands: Record<string, string>;
}
export interface Phase {
  name: string; class?: string; state: 'done' | 'failing' | 'waiting' | 'archived'; message?: string; slices?: number; more?: number;
  objects: { kind: string; ns?: string; name: string; held: boolean }[];
}
export interface Revision {
  name: string; number: number; state: string; health: Health; cause?: string; created: string; why?: string; phases: Phase[]; probes: number;
  changes: { object: string; change: string; paths?: string[] }[]; unchanged?: boolean; collisions?: { kind: string; ns?: string; name: string; owner: string }[];
}
export interface PackagePage {
  package: Package; why: Why; command: string; paused: boolean; conditions: Condition[]; revisions: Revision[]; more?: number; timeline: Timeline; notes?: string[];
}
export interface Me { user: string; own: boolean; where: string; version: string }
