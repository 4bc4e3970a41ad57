/** A native select with its label inside the frame. */

interface Props<Value extends string> {
  label: string;
  value: Value;
  options: readonly { value: Value; label: string }[];
  onChange: (value: Value) => void;
}

export function Select<Value extends string>({ label, value, options, onChange }: Props<Value>) {
  const choose = (wanted: string): void => {
    const chosen = options.find((option) => option.value === wanted);
    if (chosen) onChange(chosen.value);
  };
  return (
    <label class="select" title={options.find((option) => option.value === value)?.label}>
      <span class="select-label">{label}</span>
      <select aria-label={label} value={value} onChange={(event) => choose(event.currentTarget.value)}>
        {options.map((option) => <option value={option.value}>{option.label}</option>)}
      </select>
    </label>
  );
}
