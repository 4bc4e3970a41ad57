/** The account of a step, by the names that the page uses. */

import type { Ledger, ProfileReport } from './types.gen';

export type { Entry as LedgerEntry, Function as LedgerFunction, Ledger, Owner as LedgerOwner } from './types.gen';

/** Null if the report is from a version without ledgers, or accounts for nothing. */
export function ledgerOf({ ledger }: ProfileReport): Ledger | null {
  return ledger && ledger.entries.length > 0 && ledger.step_ns.n > 0 ? ledger : null;
}
