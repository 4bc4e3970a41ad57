/** One of a few, side by side. */

interface Props<Id extends string> { label: string; value: Id; options: readonly { id: Id; label: string }[]; onChoose: (id: Id) => void }

export const Choice = <Id extends string>({ label, value, options, onChoose }: Props<Id>) => (
  <div class="segmented" role="group" aria-label={label}>
    {options.map(({ id, label: text }) => (
      <button type="button" class="button" aria-pressed={id === value} onClick={() => onChoose(id)}>{text}</button>
    ))}
  </div>
);
