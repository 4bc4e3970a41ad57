/** Two figures of one thing, each as a bar with its value, one pair per line. */

import type { ComponentChildren } from 'preact';

interface Figure { value: number; text: string }
interface Pair { key: string; name: ComponentChildren; strong?: boolean; first: Figure; second: Figure }
interface Props { label: string; names: [string, string]; pairs: readonly Pair[] }

export function PairedBars({ label, names, pairs }: Props) {
  const most = Math.max(0, ...pairs.flatMap(({ first, second }) => [first.value, second.value]));
  return (
    <ul class="pairs" aria-label={label}>
      {pairs.map(({ key, name, strong = false, first, second }) => (
        <li key={key} class={`pair${strong ? ' strong' : ''}`}>
          <span class="pair-name">{name}</span>
          <Line name={names[0]} figure={first} most={most} kind="first" />
          <Line name={names[1]} figure={second} most={most} kind="second" />
        </li>
      ))}
    </ul>
  );
}

const Line = ({ name, figure: { value, text }, most, kind }: { name: string; figure: Figure; most: number; kind: 'first' | 'second' }) => (
  <span class="pair-line">
    <span class="muted">{name}</span>
    <span class="pair-track" aria-hidden="true"><span class={`pair-bar ${kind}`} style={{ width: `${most > 0 ? (Math.max(value, 0) / most) * 100 : 0}%` }} /></span>
    <b class="number">{text}</b>
  </span>
);
