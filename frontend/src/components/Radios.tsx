/** One of a few, below each other. */

import { useId } from 'preact/hooks';

interface Props<Id extends string> { title: string; value: Id; options: readonly { id: Id; label: string }[]; onChoose: (id: Id) => void }

export function Radios<Id extends string>({ title, value, options, onChoose }: Props<Id>) {
  const name = useId();
  return (
    <fieldset>
      <legend>{title}</legend>
      {options.map(({ id, label }) => (
        <label><input type="radio" name={name} checked={id === value} onChange={() => onChoose(id)} />{label}</label>
      ))}
    </fieldset>
  );
}
