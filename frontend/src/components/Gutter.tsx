/** The cost of one line, left of its number; the words are for those who cannot see the bar, and for the pointer. */

interface Cost { bar: number; time: string; share: string; words: string }

export const Gutter = ({ cost }: { cost: Cost | undefined }) => (
  <span class="gutter" title={cost?.words}>
    {cost && (
      <>
        <span class="gutter-track" aria-hidden="true"><span style={{ width: `${cost.bar * 100}%` }} /></span>
        <span class="gutter-time" aria-hidden="true">{cost.time}</span>
        <span class="gutter-share" aria-hidden="true">{cost.share}</span>
        <span class="hidden">Line costs {cost.words}. </span>
      </>
    )}
  </span>
);
