/** The details of a finding by kind. */

import type { CodeChange, Finding, Note } from '../../api/types.gen';

interface Details { notes: Note[]; changes: CodeChange[]; unknown: unknown[] }

/** tsc fails here if a kind has no case; at run time a newer server may still send one to an older page. */
export function byKind(details: Finding['details']): Details {
  const found: Details = { notes: [], changes: [], unknown: [] };
  for (const detail of details) {
    switch (detail.kind) {
      case 'note': found.notes.push(detail); break;
      case 'code_change': found.changes.push(detail); break;
      default: found.unknown.push(detail satisfies never);
    }
  }
  return found;
}
