/** The listed findings, and their order. */

import { placeText, type PlaceLike } from './places';
import type { Group, Sort } from './route';

export interface Rankable { action?: string;
  rule: string;
  category: string;
  severity: 'high' | 'medium' | 'low' | 'info';
  confidence: 'high' | 'medium' | 'low';
  message: string;
  matches: number;
  cost_ns: number;
  saving: { expected_ns: number; low_ns: number } | null;
  places: readonly (PlaceLike & { function: string; own_code: boolean })[];
}

/**
 * Keeps the findings in which every word of the query occurs; `also` gives words that are not in the finding itself.
 */
export function filtered<F extends Rankable>(findings: readonly F[], query: string, also: (finding: F) => string = () => ''): F[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return findings.filter((finding) => {
    const text = `${searchText(finding)}\n${also(finding)}`;
    return words.every((word) => text.includes(word));
  });
}

function searchText(finding: Rankable): string {
  const places = finding.places.map((place) => `${place.file}:${place.line} ${place.function}`);
  return [finding.action ?? '', finding.message.replaceAll('`', ''), finding.rule, finding.category, finding.severity, ...places]
    .join('\n').toLowerCase();
}

/** Best first; equal ones stay in the server's order. */
export function sorted<F extends Rankable>(findings: readonly F[], sort: Sort): F[] {
  return findings.toSorted((a, b) => ORDERS[sort](a, b) || ORDERS.saving(a, b) || ORDERS.cost(a, b));
}

const expected = (finding: Rankable): number => finding.saving?.expected_ns ?? -1;
const least = (finding: Rankable): number => finding.saving?.low_ns ?? -1;
/** Findings without a place come last. */
const firstPlace = (finding: Rankable): string => {
  const [place] = finding.places;
  return place ? `${placeText(place)} ${place.file}` : '\uffff';
};

const ORDERS: Record<Sort, (a: Rankable, b: Rankable) => number> = {
  saving: (a, b) => expected(b) - expected(a),
  safe: (a, b) => least(b) - least(a),
  cost: (a, b) => b.cost_ns - a.cost_ns,
  matches: (a, b) => b.matches - a.matches,
  file: (a, b) => firstPlace(a).localeCompare(firstPlace(b), 'en', { numeric: true }),
};

/** The findings listed one by one, and the small ones folded below; without large ones, small ones are not folded. */
export function bySize<F extends { small?: boolean }>(findings: readonly F[]): { large: readonly F[]; small: readonly F[] } {
  const large = findings.filter((each) => !each.small);
  return large.length > 0 ? { large, small: findings.filter((each) => each.small) } : { large: findings, small: [] };
}

/** The part of a step that fixing all of these saves, as the terminal counts it. */
export const savedTogether = (findings: readonly { saving: { speedup: number | null } | null }[]): number =>
  findings.reduce((sum, { saving }) => sum + (saving?.speedup ? 1 - 1 / saving.speedup : 0), 0);

/** True if a finding is in the user's own code: in a place outside installed packages. */
export const isOwn = ({ places }: Pick<Rankable, 'places'>): boolean => places.some((place) => place.own_code);

export interface Grouped<F> { key: string; findings: readonly F[] }

/** The findings in groups; both keep their order. */
export function grouped<F extends Rankable>(findings: readonly F[], group: Group): Grouped<F>[] {
  const groups = new Map<string, F[]>();
  for (const finding of findings) {
    const key = KEYS[group](finding);
    groups.set(key, [...groups.get(key) ?? [], finding]);
  }
  return [...groups].map(([key, of]) => ({ key, findings: of }));
}

const KEYS: Record<Group, (finding: Rankable) => string> = {
  none: () => '',
  check: ({ rule }) => rule,
  file: ({ places: [first] }) => first?.file ?? '',
  severity: ({ severity }) => severity,
};
