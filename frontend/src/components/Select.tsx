/** A native select with its label inside the frame. */

interface Option { value: string; label: string }

interface Props {
  label: string;
  value: string;
  options: readonly Option[];
  onChange: (value: string) => void;
}

export const Select = ({ label, value, options, onChange }: Props) => (
  <label class="select" title={options.find((option) => option.value === value)?.label}>
    <span class="select-label">{label}</span>
    <select aria-label={label} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {options.map((option) => <option value={option.value}>{option.label}</option>)}
    </select>
  </label>
);
