/** The account of a step, by the names that the page uses. */

import type { Ledger, ProfileReport } from './types.gen';

export type { Entry as LedgerEntry, Function as LedgerFunction, Ledger, Owner as LedgerOwner } from './types.gen';

/** Null if it accounts for nothing; its banner then says why. */
export const ledgerOf = ({ ledger }: ProfileReport): Ledger | null => (ledger.entries.length > 0 && ledger.step_ns.n > 0 ? ledger : null);
