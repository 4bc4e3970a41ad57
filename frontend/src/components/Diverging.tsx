/**
 * A difference as a bar from a middle line: less to the left, more to the right. Decoration; the figure is beside it.
 */

interface Props { value: number; most: number; tone: 'good' | 'bad' | 'even' }

export function Diverging({ value, most, tone }: Props) {
  const width = most > 0 ? Math.min(1, Math.abs(value) / most) * 50 : 0;
  return (
    <span class="diverging" aria-hidden="true">
      <span class={`diverging-bar ${tone}`} style={{ left: `${value < 0 ? 50 - width : 50}%`, width: `${width}%` }} />
    </span>
  );
}
