/** Findings and checks that the user has muted: findings by id, checks by name. */

export interface Mutes { findings: string[]; rules: string[] }

export const NOTHING: Mutes = { findings: [], rules: [] };

export const isMuted = (mutes: Mutes, finding: { id: string; rule: string }): boolean =>
  mutes.findings.includes(finding.id) || mutes.rules.includes(finding.rule);

export interface MuteChange { mute: Mutes; unmute: Mutes }

/** `mutes` after a change. */
export const changed = (mutes: Mutes, { mute, unmute }: MuteChange): Mutes => ({
  findings: merged(mutes.findings, mute.findings, unmute.findings),
  rules: merged(mutes.rules, mute.rules, unmute.rules),
});

const merged = (old: readonly string[], added: readonly string[], removed: readonly string[]): string[] =>
  [...new Set([...old, ...added])].filter((name) => !removed.includes(name)).toSorted();

/** The mutes stored in the browser; anything else counts as none. */
export function mutesFrom(text: string | null): Mutes {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    return { findings: names(value, 'findings'), rules: names(value, 'rules') };
  } catch {
    return NOTHING;
  }
}

function names(value: unknown, key: string): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const list: unknown = Object.entries(value).find(([name]) => name === key)?.[1];
  return Array.isArray(list) ? list.filter((each) => typeof each === 'string') : [];
}
