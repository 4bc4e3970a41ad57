/** The cost of one line, left of its number; the words are for those who cannot see the bar, and for the pointer. */

interface Part { width: number; colour: string }
interface Cost { bar: number; time: string; share: string; parts: readonly Part[]; passes: Readonly<Partial<Record<string, string>>>; words: string }
interface Column { name: string; colour: string }

interface GutterProps { cost: Cost | undefined; columns: readonly Column[] }

export const Gutter = ({ cost, columns }: GutterProps) => (
  <span class="gutter" title={cost?.words}>
    <span class="gutter-track" aria-hidden="true">
      {cost && (
        <span style={{ width: `${cost.bar * 100}%` }}>
          {cost.parts.map(({ width, colour }) => width > 0 && <span class={colour} style={{ width: `${width * 100}%` }} />)}
        </span>
      )}
    </span>
    <span class="gutter-time" aria-hidden="true">{cost?.time}</span>
    <span class="gutter-share" aria-hidden="true">{cost?.share}</span>
    {columns.map(({ name }) => <span class="gutter-pass" aria-hidden="true">{cost?.passes[name]}</span>)}
    {cost && <span class="hidden">Line costs {cost.words}. </span>}
  </span>
);

/** Names of the columns, in the colours of the bars. */
export const GutterHead = ({ per, columns }: { per: string; columns: readonly Column[] }) => (
  <div class="gutter-heads" aria-hidden="true">
    <span class="gutter">
      <span class="gutter-track" />
      <span class="gutter-time">Per {per}</span>
      <span class="gutter-share">Share</span>
      {columns.map(({ name, colour }) => <span class="gutter-pass"><i class={`gutter-swatch ${colour}`} />{name}</span>)}
    </span>
    <span class="gutter-called"><i class="gutter-swatch part-called" />in functions that the line calls</span>
  </div>
);
