/**
 * The account of a step, as `ProfileReport.ledger` holds it. Written by hand until `types.gen.ts` has it: then these
 * interfaces go, and this file passes the generated ones on.
 */

import type { Bound, Cause, Kind, KnownBy, Proof, Recording, StepSource } from '../base/ledger';
import type { ProfileReport } from './types.gen';

/** Times are ns since the profile's start; durations that name no step are of the whole window. */
export interface Ledger {
  window: { start_ns: number; end_ns: number };
  step_source: StepSource;
  recording: Recording;
  /** What kind of recording it is, in a sentence; null where that is `steady`. */
  banner: string | null;
  left_out: LeftOut[];
  steps: { name: string; start_ns: number; end_ns: number; host_ns: number; device_ns: number }[];
  step_ns: { median: number; mean: number; n: number };
  host_step_ns: number | null;
  unnamed_ns: number;
  entries: LedgerEntry[];
}

export interface LeftOut { ns: number; reason: string }

/** One cause and kind. Over all entries `ns_total` adds up to the window, and `ns_by_step[i]` to step `i`. */
export interface LedgerEntry {
  id: string;
  cause: Cause;
  kind: Kind | null;
  ns_total: number;
  ns_per_step: number;
  ns_by_step: number[];
  share: number;
  count: number;
  owner: LedgerOwner;
  proof: Proof;
  confidence: string;
  limit?: { share_reached: number | null; bound: Bound; known_share: number; by: 'shapes' | 'name' } | null;
  communication?: { transfer_ns: number | null; wait_ns: number; by: 'ranks' | 'at_least' } | null;
  hidden_ns?: number;
  finding_id?: string | null;
  advice?: string | null;
  /** Why there is nothing to do, or why that cannot be known. */
  nothing_to_fix?: string | null;
  /** At most five, the largest first; the first is `owner`. */
  owners?: LedgerOwner[];
  evidence?: { start_ns: number; end_ns: number; event: string }[];
}

/** Every name that the recording gives; null or empty where it gives none. */
export interface LedgerOwner {
  operator?: string | null;
  kernel?: string | null;
  library?: LedgerFunction | null;
  own?: LedgerFunction | null;
  thread?: string | null;
  mark?: string | null;
  known_by?: KnownBy;
  neighbours?: string | null;
  /** How much of the entry is this owner's, over the window. */
  ns?: number;
}

export interface LedgerFunction { function: string; file: string; line: number }

/** Null where the report is from before there was one, or accounts for nothing. */
export function ledgerOf({ ledger }: ProfileReport & { ledger?: Ledger | null }): Ledger | null {
  return ledger && ledger.entries.length > 0 && ledger.step_ns.n > 0 ? ledger : null;
}
