/** Work under way. */

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { share } from '../base/units';

export function ProgressBar({ label, fraction }: { label: string; fraction: number }) {
  const percent = Math.round(fraction * 100);
  return (
    <div class="progress" role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={percent}
      aria-valuetext={share(percent / 100)}>
      <span class="progress-done" style={{ width: `${percent}%` }} />
    </div>
  );
}

const PATIENCE_MS = 300; // a shorter wait is better not drawn at all

/** Draws its children once the wait is long enough to show a placeholder. */
export function Late({ children }: { children: ComponentChildren }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);
  return late ? <>{children}</> : null;
}

/** Grey placeholders of rows. */
export const Skeleton = ({ rows }: { rows: number }) => (
  <Late><div class="skeleton" aria-hidden="true">{Array.from({ length: rows }, () => <span class="skeleton-row" />)}</div></Late>
);
